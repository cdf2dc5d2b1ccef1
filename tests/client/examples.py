"""Builds programs of examples/ with the library in the build directory, and runs them.

examples/kube_*.c are programs for libvigil-kube, which kube_examples_test.py tests; the others are for libvigil."""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "live"))
from server import ROOT, SUBJECT, LiveTest  # noqa: E402

BUILD = pathlib.Path(SUBJECT).parent
SANITIZED = b"__asan_init" in (BUILD / "libvigil.so.1").read_bytes()
KUBE = "kube_"


def example_names(for_kube):
    return {path.stem for path in (ROOT / "examples").glob("*.c") if path.stem.startswith(KUBE) == for_kube}


class ExampleTest(LiveTest):
    """A class of tests in which test_x is a test of examples/x.c."""

    def build(self, name, *libraries):
        program = self.scratch / name
        sanitizers = ["-fsanitize=address,undefined"] if SANITIZED else []
        ours = ["-lvigil-kube", "-lvigil"] if name.startswith(KUBE) else ["-lvigil"]
        subprocess.run(["cc", "-std=gnu99", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/include", "-o", str(program),
                        str(ROOT / f"examples/{name}.c"), *sanitizers, f"-L{BUILD}", *ours, *libraries],
                       check=True, timeout=120)
        return program

    def begin(self, program, *arguments, **env):
        process = subprocess.Popen([str(program), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True,
                                   env=dict(os.environ, LD_LIBRARY_PATH=str(BUILD), **env))
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def end(self, process):
        process.terminate()
        self.assertEqual(process.wait(60), 0)

    def names_of_tests(self):
        return {name[len("test_"):] for name in dir(self) if name.startswith("test_")} - {"every_example_has_a_test"}
