#!/usr/bin/python3
"""debian/ agrees with make install, with the libraries and with the versions in the source. `make deb-test` builds the
packages themselves."""
import collections
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from installed import BUILD, output
from server import ROOT, only_vigil

DEBIAN = ROOT / "debian"
ARCHITECTURE = "any-linux-gnu"


def rows_of(package):
    """Patterns of debian/PACKAGE.install and where what they match goes; "" where it stays."""
    for line in (DEBIAN / f"{package}.install").read_text().splitlines():
        pattern, _, target = line.partition(" ")
        yield pattern, target


def files_below(path):
    return [file for file in path.rglob("*") if not file.is_dir()] if path.is_dir() else [path]


def packages():
    return re.findall(r"^Package: (\S+)", (DEBIAN / "control").read_text(), re.M)


@only_vigil
class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp(prefix="vigil-packages-"))
        cls.addClassCleanup(shutil.rmtree, cls.root)
        output(str(ROOT / "tools/install"), str(BUILD), "/usr", str(cls.root), "/etc", f"lib/{ARCHITECTURE}", cwd=ROOT)

    def test_every_installed_file_is_in_one_package(self):
        places = collections.defaultdict(list)
        for package in packages():
            for pattern, _ in rows_of(package):
                found = [file for path in self.root.glob(pattern) for file in files_below(path)]
                self.assertNotEqual(found, [], f"debian/{package}.install: nothing is installed as {pattern}")
                for file in found:
                    places[file].append(package)
        for file in files_below(self.root):
            self.assertEqual(len(places[file]), 1, f"/{file.relative_to(self.root)} is in packages {places[file]}")

    def test_libraries_are_found_in_a_directory_of_the_architecture(self):
        lib = self.root / "usr/lib" / ARCHITECTURE
        said = output("pkg-config", "--libs", "libvigil-kube", f"--define-variable=prefix={self.root}/usr",
                      env={"PKG_CONFIG_PATH": f"{lib}/pkgconfig", "PATH": "/usr/bin:/bin"}).stdout
        self.assertIn(f"-L{lib} ", said)
        project = self.root.parent / f"{self.root.name}-project"
        project.mkdir()
        self.addCleanup(shutil.rmtree, project)
        (project / "CMakeLists.txt").write_text(f"""cmake_minimum_required(VERSION 3.20)
project(consumer C)
list(APPEND CMAKE_PREFIX_PATH {self.root}/usr)
set(CMAKE_LIBRARY_ARCHITECTURE {ARCHITECTURE})
find_package(libvigil 1.0 REQUIRED COMPONENTS kube)
foreach(kind libvigil static kube kube_static)
    get_target_property(file libvigil::${{kind}} IMPORTED_LOCATION)
    if(NOT EXISTS ${{file}})
        message(FATAL_ERROR "there is no ${{file}}")
    endif()
endforeach()
get_target_property(include libvigil::libvigil INTERFACE_INCLUDE_DIRECTORIES)
if(NOT EXISTS ${{include}}/vigil/vigil.h)
    message(FATAL_ERROR "there are no headers in ${{include}}")
endif()
""")
        output("cmake", "-S", str(project), "-B", str(project / "b"), "-G", "Ninja")

    def test_symbols_are_those_of_the_version_scripts(self):
        done = subprocess.run([str(ROOT / "tools/write-symbols"), "--check"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_versions_agree(self):
        version = re.match(r"vigil \((\S+?)\) ", (DEBIAN / "changelog").read_text())[1]
        self.assertRegex((ROOT / "CMakeLists.txt").read_text(), rf"project\(vigil VERSION {re.escape(version)} ")
        self.assertEqual(output(str(BUILD / "vigil"), "version").stdout, f"vigil {version}\n")

    def test_make_installs_what_a_build_needs(self):
        fields = (DEBIAN / "control").read_text()
        needed = re.search(r"^Build-Depends:\n((?: .*\n)+)", fields, re.M)[1]
        names = set(re.findall(r"^ ([a-z0-9.+-]+)", needed, re.M)) - {"debhelper-compat", "dh-sequence-installsysusers"}
        script = (ROOT / "tools/install-deps").read_text()
        self.assertLessEqual(names, set(re.search(r'^build="(.*)"', script, re.M)[1].split()))


if __name__ == "__main__":
    unittest.main()
