"""What make install has installed, for the tests of it: each has a copy in a directory of its own."""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading

from server import ROOT, SUBJECT, WAIT_SECONDS, LiveTest

BUILD = pathlib.Path(SUBJECT).parent
SANITIZED = b"__asan_init" in pathlib.Path(SUBJECT).read_bytes()
SANITIZERS = ["-fsanitize=address,undefined"] if SANITIZED else []
POSIX = ("-std=c99", "-D_POSIX_C_SOURCE=200809L")


def output(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, **options)
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done


def blocks_of_c(page):
    """The C of a page in docs/: whole programs and fragments."""
    return re.findall(r"^```c\n(.*?)^```", (ROOT / "docs" / page).read_text(), re.S | re.M)


class InstalledTest(LiveTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.original = tempfile.mkdtemp(prefix="vigil-installed-")
        cls.addClassCleanup(shutil.rmtree, cls.original)
        output(str(ROOT / "tools/install"), str(BUILD), "/usr", cls.original, "/etc", cwd=ROOT)

    def setUp(self):
        super().setUp()
        shutil.copytree(self.original, self.scratch, symlinks=True, copy_function=os.link, dirs_exist_ok=True)
        self.share, self.lib, self.include = (self.scratch / "usr" / name for name in ("share", "lib", "include"))

    def pkg_config(self, *arguments):
        return output("pkg-config", f"--define-variable=prefix={self.scratch}/usr", *arguments,
                      env={"PKG_CONFIG_PATH": f"{self.lib}/pkgconfig", "PATH": "/usr/bin:/bin"}).stdout

    def build(self, program, source, *flags, library="libvigil", standard=POSIX):
        """Builds in the way of a program that is installed elsewhere: only with what pkg-config says."""
        said = self.pkg_config("--cflags", "--libs", *flags, library).split()
        output("cc", *standard, "-Wall", "-Werror", "-o", str(program), str(source), *SANITIZERS, *said)

    @contextlib.contextmanager
    def running(self, program, **env):
        """Runs a program until its input ends; yields its output, which must not take long."""
        terminal, its_end = os.openpty()  # so that the program writes line by line
        with subprocess.Popen([str(program)], stdin=subprocess.PIPE, stdout=its_end, stderr=subprocess.DEVNULL,
                              env=dict(os.environ, LD_LIBRARY_PATH=str(self.lib), **env)) as process:
            os.close(its_end)
            too_late = threading.Timer(WAIT_SECONDS, process.kill)
            self.addCleanup(too_late.cancel)
            too_late.start()
            with open(terminal, encoding="ascii", newline="\r\n") as lines:
                yield lines
                process.stdin.close()
        self.assertEqual(process.returncode, 0)

    def build_with_cmake(self, text):
        """Builds a project that consists of this CMakeLists.txt; returns where its programs are."""
        project = self.scratch / "project"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 3.20)\nproject(consumer C)\n{text}")
        output("cmake", "-S", str(project), "-B", str(project / "b"), "-G", "Ninja",
               f"-DCMAKE_C_FLAGS={' '.join(SANITIZERS)}", f"-DCMAKE_PREFIX_PATH={self.scratch}/usr")
        output("ninja", "-C", str(project / "b"))
        return project / "b"

    def check_fragments(self, fragments, frame):
        """Compiles fragments of documentation inside a frame with two places: for their functions, and for the rest."""
        for number, block in enumerate(fragments):
            functions = re.findall(r"^static .*?^}\n", block, re.S | re.M)
            for function in functions:
                block = block.replace(function, "")
            source = self.scratch / f"fragment{number}.c"
            source.write_text(frame.format("".join(functions), block.replace("…", "")))
            done = subprocess.run(["cc", "-Wall", "-Wno-unused", "-fsyntax-only", f"-I{self.include}", str(source)],
                                  capture_output=True, text=True, timeout=600, check=False, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"})
            # Functions of the program may be missing, but none of the library.
            faults = [line for line in done.stderr.splitlines() if re.search(r"error:|warning:", line)
                      and not re.search(r"implicit declaration of function '(?!vigil)", line)]
            self.assertEqual(faults, [])
