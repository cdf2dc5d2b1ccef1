"""All tables of cases; those of a file are added here."""
import itertools

import admin_cases
import kv_cases
from compare import HOW, ORIGINALS, SHORT

# Watches expect the revisions of a new server, so they come first.
TABLES = {**kv_cases.TABLES, **admin_cases.TABLES}


def add_tests(cls):
    """A test for each table and version of the original; one for all tables in a short run, which starts fewer servers."""
    def make(version, table):
        return lambda self: self.compare(version, table)
    short = [*kv_cases.TABLES.values(), admin_cases.SHORT]
    tables = {"all": list(itertools.chain(*short))} if SHORT else TABLES
    for name, table in tables.items():
        for version in [cls.part] if HOW == "part" else ORIGINALS:
            setattr(cls, f"test_{name}_{version.replace('.', '_')}", make(version, table))
