"""Runs the tests of libvigil-kube, tests/kube_client/*.c."""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "client"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "live"))
from server import SUBJECT  # noqa: E402
from targets import drive  # noqa: E402

SUITE = os.environ.get("VIGIL_KUBE_CLIENT_SUITE", str(pathlib.Path(SUBJECT).parent / "kube_client_suite"))
# Groups that need a server of their own; the others run against any.
SPECIAL = ("broken", "identity", "restart", "script")


def groups():
    """The names of the tests in each group of the suite."""
    found = {}
    for line in subprocess.run([SUITE], check=True, capture_output=True, text=True).stdout.splitlines():
        group, name = line.split()
        found.setdefault(group, []).append(name)
    return found


def common_tests():
    return [name for group, names in groups().items() if group not in SPECIAL for name in names]


def run_test(name, env, obey=None):
    """Runs one test; obey does what it asks for. Returns its exit code and its errors."""
    return drive([SUITE, name], obey, dict({"VIGIL_NAMESPACE": name.replace("_", "-")[:60].strip("-")}, **env))
