#!/usr/bin/python3
"""Makes src/kube/types/schema/schema_rows.inc, the table of the built-in kinds' types, from what the Go types and the
OpenAPI documents of the pinned Kubernetes say. Bare facts only: names, numbers, types, merge keys.

    tools/kubegen-schema.py      needs go; the version is that of tests/kube/go.mod
"""
import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]
TARGET = ROOT / "src/kube/types/schema/schema_rows.inc"
MODULE = ROOT / "tests/kube"
SHAPES = {"": "ONE", "list": "LIST", "wrapped": "WRAPPED_LIST", "map": "MAP", "mapwrapped": "MAP_OF_LISTS"}
STRATEGIES = {"merge": "MERGE", "replace": "REPLACE", "retainKeys": "RETAIN_KEYS"}


def go(*words):
    return subprocess.run(["go", *words], check=True, capture_output=True, text=True, cwd=MODULE).stdout


class Pool:
    """Texts, each once: a byte for its length, the text, a zero."""

    def __init__(self):
        self.at, self.bytes, self.lines = {}, 0, []

    def add(self, text):
        if text not in self.at:
            self.at[text] = self.bytes
            quoted = text.replace('"', '\\"')
            self.lines.append(f'    "\\{len(text):03o}" "{quoted}\\0"')
            self.bytes += len(text) + 2
            assert len(text) < 256 and self.bytes < 65536
        return self.at[text]


def schema_name(package):
    host, _, rest = package.partition("/")
    return ".".join([*reversed(host.split(".")), *rest.split("/")])


def read_openapi(directory):
    schemas = {}
    for path in sorted(directory.glob("api*_openapi.json")):
        schemas.update(json.loads(path.read_text()).get("components", {}).get("schemas", {}))
    return schemas


def flags_of(field, required):
    found = [STRATEGIES[s] for s in field.get("strategy", "").split(",") if s]
    empty = field.get("empty", "")
    found += ["POINTER"] * ("pointer" in field) + ["INLINE"] * ("inline" in field)
    found += ["OMIT_EMPTY"] * ("omitempty" in empty) + ["OMIT_ZERO"] * ("omitzero" in empty)
    found += ["REQUIRED"] * (field["name"] in required)
    return "|".join(sorted(found)) or "0"


class Table:
    def __init__(self, facts, openapi):
        self.facts, self.openapi, self.pool = facts, openapi, Pool()
        self.pool.add("")
        self.names = sorted(facts["types"])
        self.index = {name: i for i, name in enumerate(self.names)}
        self.packages = sorted({name.rpartition(".")[0] for name in self.names})
        self.lists = {("", "", "", ""): 0}
        self.fields, self.types = [], []

    def schema(self, name):
        package, _, short = name.rpartition(".")
        return self.openapi.get(f"{schema_name(package)}.{short}", {})

    def key_defaults(self, prop, keys):
        """What an item that leaves a key out is taken to have, as JSON; nothing between two commas: none."""
        reference = prop["items"].get("$ref") or prop["items"]["allOf"][0]["$ref"]
        properties = self.openapi[reference.rpartition("/")[2]]["properties"]
        values = [properties[key].get("default") for key in keys]
        return ",".join("" if value is None else json.dumps(value) for value in values)

    def list_row(self, field, prop):
        kind = prop.get("x-kubernetes-list-type") or prop.get("x-kubernetes-map-type", "")
        keys = prop.get("x-kubernetes-list-map-keys", [])
        row = (field.get("mergeKey", ""), kind, ",".join(keys), self.key_defaults(prop, keys) if keys else "")
        return self.lists.setdefault(row, len(self.lists))

    def add_type(self, name):
        package, _, short = name.rpartition(".")
        schema, first = self.schema(name), len(self.fields)
        for field in self.facts["types"][name]:
            prop = schema.get("properties", {}).get(field["name"], {})
            self.fields.append(
                "{%d,%d,%s,%s,%s,%s,%d}," % (
                    self.pool.add(field["name"]), self.index.get(field.get("type"), 0),
                    field.get("number", "0"), field["kind"].upper(), SHAPES[field.get("shape", "")],
                    flags_of(field, schema.get("required", [])), self.list_row(field, prop)))
        atomic = schema.get("x-kubernetes-map-type") == "atomic"
        self.types.append("{%d,%d,%d,%d,%d}," % (self.pool.add(short), first, len(self.fields) - first,
                                                 self.packages.index(package), atomic))

    def text(self, version):
        for name in self.names:
            self.add_type(name)
        kinds = ["{%d,%d,%d}," % (self.pool.add(k["apiVersion"]), self.pool.add(k["kind"]),
                                  self.index[k["type"]]) for k in self.facts["kinds"]]
        lists = ['{%d,%s,%d,%d},' % (self.pool.add(key), "LIST_" + (kind or "none").upper(), self.pool.add(keys),
                                     self.pool.add(defaults))
                 for key, kind, keys, defaults in self.lists]
        packages = [f'"{schema_name(p)}",' for p in self.packages]
        parts = [("KUBE_SCHEMA_FIELDS", self.fields), ("KUBE_SCHEMA_TYPES", self.types),
                 ("KUBE_SCHEMA_KINDS", kinds), ("KUBE_SCHEMA_LISTS", lists),
                 ("KUBE_SCHEMA_PACKAGES", packages), ("KUBE_SCHEMA_POOL", self.pool.lines)]
        head = (f"/* Generated by tools/kubegen-schema.py from the types and OpenAPI documents of Kubernetes {version}.\n"
                " * Do not edit. */\n/* clang-format off */\n")
        return head + "".join(f"#ifdef {name}\n" + "\n".join(rows) + f"\n#undef {name}\n#endif\n"
                              for name, rows in parts)


def main():
    module = json.loads(go("list", "-m", "-json", "k8s.io/kubernetes"))
    facts = json.loads(go("run", "./facts"))
    openapi = read_openapi(pathlib.Path(module["Dir"]) / "api/openapi-spec/v3")
    table = Table(facts, openapi)
    TARGET.write_text(table.text(module["Version"]))
    missing = [n for n in table.names if not table.schema(n)]
    print(f"{TARGET.relative_to(ROOT)}: {len(table.types)} types, {len(table.fields)} fields, "
          f"{table.pool.bytes} bytes of names; without a schema: {', '.join(missing)}")


if __name__ == "__main__":
    main()
