#!/usr/bin/python3
"""The Debian packages that make deb has built: lintian, installing, using, upgrading and removing them."""
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from debian import DEB, ROOT, Debian, run

VERSION = re.match(r"vigil \((\S+?)\)", (ROOT / "debian/changelog").read_text())[1]
LIBRARIES = re.findall(r"^Package: (lib\S+\d)$", (ROOT / "debian/control").read_text(), re.M)
# What dpkg, apt, ldconfig and the user management leave behind; everything else must be as it was.
KEPT = re.compile(r"var/(lib/dpkg|lib/apt|cache|log)/|(tmp|proc|dev)(/|$)|etc/(ld\.so\.cache|(passwd|group|shadow|gshadow)-?|\.pwd\.lock)$")


def deb(package, folder=DEB):
    (found,) = folder.glob(f"{package}_{VERSION}_*.deb")
    return found


class Packages(unittest.TestCase):
    """The files themselves."""

    def test_lintian_finds_nothing(self):
        (changes,) = DEB.glob(f"vigil_{VERSION}_*.changes")
        done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", "--no-tag-display-limit", str(changes)],
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def test_programs_and_libraries_are_hardened(self):
        for package, file in (("vigil", "usr/bin/vigil"), ("vigil-bench", "usr/bin/vigil-bench"), *((name, None) for name in LIBRARIES)):
            with self.subTest(package), tempfile.TemporaryDirectory() as folder:
                run("dpkg-deb", "-x", deb(package), folder)
                path = pathlib.Path(folder) / file if file else next(pathlib.Path(folder).glob("usr/lib/*/*.so.1.*"))
                dynamic = run("readelf", "-Wdlh", path)
                self.assertRegex(dynamic, r"Type: +DYN ")
                self.assertIn("GNU_RELRO", dynamic)
                self.assertRegex(dynamic, r"FLAGS.*(BIND_NOW|NOW)")
                self.assertNotRegex(dynamic, r"RUNPATH|RPATH")
                self.assertNotRegex(dynamic, r"GNU_STACK.*RWE")
                self.assertIn("__stack_chk_fail", run("nm", "-D", "--undefined-only", path))

    def test_only_the_load_generator_depends_on_nghttp2(self):
        depends = {name: run("dpkg-deb", "-f", deb(name), "Depends") for name in ("vigil", "vigil-bench", *LIBRARIES)}
        self.assertEqual([name for name, others in depends.items() if "nghttp2" in others], ["vigil-bench"])

    def test_libraries_depend_on_what_they_use(self):
        depends = {name: run("dpkg-deb", "-f", deb(name), "Depends") for name in LIBRARIES}
        self.assertNotIn("libyaml", depends["libvigil1"])
        self.assertIn(f"libvigil1 (>= {VERSION})", depends["libvigil-kube1"])


class Installed(unittest.TestCase):
    """On a machine of their own."""

    def setUp(self):
        self.debian = Debian()
        self.addCleanup(self.debian.remove)
        shutil.copytree(ROOT / "debian/tests", self.debian.root / "tmp/debian/tests")
        self.before = self.debian.files()

    def data_directory(self):
        return self.debian.root / "var/lib/vigil"

    def check_nothing_is_left(self):
        left = {path for path in self.debian.files() ^ self.before if not KEPT.match(path)}
        self.assertEqual(left, set())

    def record_systemctl(self):
        """From now on it looks as if systemd ran, with every unit active; returns the file with its arguments."""
        log = self.debian.root / "tmp/systemctl.log"
        log.touch()
        (self.debian.root / "run/systemd/system").mkdir(parents=True)
        program = self.debian.root / "usr/bin/systemctl"
        program.write_text('#!/bin/sh\necho "$*" >>/tmp/systemctl.log\n')
        program.chmod(0o755)
        return log

    def try_it(self, name):
        self.debian.run(f"debian/tests/{name}", directory="/tmp", alone=True)

    def test_server_is_installed_tried_and_removed(self):
        self.debian.install(deb("vigil"))
        user = self.debian.run("getent", "passwd", "vigil").strip().split(":")
        self.assertEqual(user[5:], ["/var/lib/vigil", "/usr/sbin/nologin"])
        status = self.data_directory().stat()
        self.assertEqual((status.st_uid, status.st_gid, status.st_mode & 0o7777), (int(user[2]), int(user[3]), 0o700))
        self.assertFalse(list(self.debian.root.glob("etc/systemd/system/*/vigil.service")), "the server is not started by itself")
        self.assertFalse((self.debian.root / "usr/bin/etcdctl").exists())
        self.try_it("server")
        settings = self.debian.root / "etc/default/vigil"
        settings.write_text("VIGIL_LOG_LEVEL=warn\n")
        told = self.record_systemctl()
        self.debian.apt("remove", "vigil")
        self.assertRegex(told.read_text(), r"(?m)^(.* )?stop vigil.service$")
        (self.debian.root / "usr/bin/systemctl").unlink()
        shutil.rmtree(self.debian.root / "run/systemd")
        self.assertTrue(any(self.data_directory().iterdir()))
        self.assertTrue(settings.exists())
        self.debian.apt("purge", "--auto-remove", "vigil")
        self.check_nothing_is_left()

    def test_upgrade_keeps_data_and_settings(self):
        self.debian.install(deb("vigil"))
        settings = self.debian.root / "etc/default/vigil"
        settings.write_text("VIGIL_LOG_LEVEL=warn\n")
        (self.data_directory() / "file").write_text("data")
        parts = self.debian.root / "tmp/parts"
        run("dpkg-deb", "-R", deb("vigil"), parts)
        control = parts / "DEBIAN/control"
        control.write_text(control.read_text().replace(f"Version: {VERSION}", f"Version: {VERSION}+next"))
        with (parts / "etc/default/vigil").open("a") as file:
            file.write("# changed by the next version\n")
        run("dpkg-deb", "--root-owner-group", "-b", parts, self.debian.root / "tmp/next.deb")
        told = self.record_systemctl()
        self.debian.apt("-o", "Dpkg::Options::=--force-confold", "install", "/tmp/next.deb")
        self.assertRegex(told.read_text(), r"(?m)^(.* )?try-restart vigil.service$")
        self.assertNotRegex(told.read_text(), r"(?m)^(.* )?(start|enable) vigil.service$")
        self.assertIn(f"{VERSION}+next", self.debian.run("dpkg-query", "-W", "vigil"))
        self.assertEqual(settings.read_text(), "VIGIL_LOG_LEVEL=warn\n")
        self.assertEqual((self.data_directory() / "file").read_text(), "data")

    def test_stays_beside_the_packages_of_etcd(self):
        self.debian.install("etcd-client", deb("vigil"))
        self.assertIn("etcd-client", self.debian.run("dpkg-query", "-S", "/usr/bin/etcdctl"))
        self.try_it("server")

    def test_programs_are_built_with_the_libraries(self):
        tools = ("gcc", "libc6-dev", "libcrypt-dev", "liblmdb-dev", "libssl-dev", "libyaml-dev", "pkg-config", "zlib1g-dev")
        self.debian.install(*tools)
        self.before = self.debian.files()
        self.debian.install(deb("vigil"), deb("libvigil-dev"), *map(deb, LIBRARIES))
        self.try_it("libraries")
        self.debian.apt("purge", "--auto-remove", "vigil", "libvigil-dev", *LIBRARIES)
        self.check_nothing_is_left()


if __name__ == "__main__":
    unittest.main()
