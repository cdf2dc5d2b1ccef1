#!/usr/bin/python3
"""The files that make install installs for the server: all exist, and the programs that use them accept them."""
import os
import re
import shlex
import shutil
import subprocess
import unittest

from installed import BUILD, InstalledTest, output
from server import ROOT, SUBJECT, only_vigil


@only_vigil
class Install(InstalledTest):
    def test_program_runs_under_all_its_names(self):
        self.assertIn("vigil", output(str(self.scratch / "usr/bin/vigil"), "version").stdout)
        etcd = self.scratch / "usr/libexec/vigil/etcd"
        self.assertIn("etcd Version: 3.", output(str(etcd), "--version").stdout)
        etcdctl = self.scratch / "usr/libexec/vigil/etcdctl"
        self.assertIn("etcdctl version: 3.", output(str(etcdctl), "version").stdout)
        apiserver = self.scratch / "usr/libexec/vigil/kube-apiserver"
        self.assertIn("Kubernetes v1.", output(str(apiserver), "--version").stdout)
        self.assertEqual(output(str(self.scratch / "usr/bin/vigil"), "assets").stdout, f"{apiserver.parent.resolve()}\n")

    def install_as_a_user(self, *variables):
        """Runs what make install runs, without building, as a user who may write only below the scratch directory."""
        printed = output("make", "--no-print-directory", "-n", "-o", "build", "install", *variables, cwd=ROOT).stdout
        command = shlex.split(printed)
        self.assertEqual(command[:2], ["tools/install", "build"])
        ordinary = []
        if os.geteuid() == 0:
            os.chown(self.scratch, 65534, 65534)
            # It may read a source tree that belongs to root alone.
            ordinary = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all,+dac_read_search",
                        "--ambient-caps=+dac_read_search", "--bounding-set=-all,+dac_read_search"]
        return output(*ordinary, command[0], str(BUILD), *command[2:], cwd=ROOT,
                      env={"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}).stdout

    def test_user_without_rights_installs_below_a_directory_of_their_own(self):
        home = self.scratch / "home"
        home.mkdir()
        if os.geteuid() == 0:
            os.chown(home, 65534, 65534)
        self.install_as_a_user(f"PREFIX={home}/x")
        self.assertIn("vigil", output(str(home / "x/bin/vigil"), "version").stdout)
        self.assertIn("VIGIL_", (home / "x/etc/default/vigil").read_text())
        unit = (home / "x/lib/systemd/system/vigil.service").read_text()
        self.assertIn(f"EnvironmentFile=-{home}/x/etc/default/vigil\n", unit)
        self.assertEqual([path.name for path in home.iterdir()], ["x"])

    def test_settings_are_in_sysconfdir(self):
        for prefix, given, expected in (("/usr/local", None, "/etc"), ("/opt/vigil", "/etc", "/etc")):
            root = self.scratch / f"root{prefix}".replace("/", "_")
            variables = [f"PREFIX={prefix}", f"DESTDIR={root}", *([f"SYSCONFDIR={given}"] if given else [])]
            self.install_as_a_user(*variables)
            self.assertEqual([str(path) for path in root.rglob("default/vigil")], [f"{root}{expected}/default/vigil"], variables)
            unit = (root / prefix[1:] / "lib/systemd/system/vigil.service").read_text()
            self.assertIn(f"EnvironmentFile=-{expected}/default/vigil\n", unit)

    def test_manual_pages_are_complete_and_without_warnings(self):
        for name, parts in (("serve", ("CONFIGURATION FILE", "SIGNALS")), ("import", ("SOURCE",)),
                            ("snapshot", ("save|restore|status FILE", "--skip-hash-check")),
                            ("repair", ("WHAT IS LOST", "--accept-loss")),
                            ("salvage", ("WHAT IS SALVAGED", "--to")),
                            ("kube-watch", ("OUTPUT", "--informer")), ("cel", ("EXAMPLES", "--var"))):
            page = self.share / f"man/man8/vigil-{name}.8"
            done = output("man", "--warnings", "-l", str(page),
                          env={"MANWIDTH": "100", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"})
            self.assertEqual(done.stderr, "")
            for part in ("EXIT STATUS", *parts, *(["--data-dir"] if name not in ("salvage", "kube-watch", "cel") else [])):
                self.assertIn(part, done.stdout)

    def test_every_command_of_the_client_has_a_manual_page(self):
        pages = output(SUBJECT, "man", "pages").stdout.split()
        self.assertIn("get", pages)
        self.assertIn("lease", pages)
        for name in pages:
            page = self.share / f"man/man1/vigil-{name}.1"
            done = output("man", "--warnings", "-l", str(page),
                          env={"MANWIDTH": "80", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"})
            self.assertEqual(done.stderr, "", name)
            self.assertEqual([line for line in done.stdout.split("\n") if len(line) > 80], [], name)
            for part in ("NAME", "SYNOPSIS", "--endpoints", "EXIT STATUS"):
                self.assertIn(part, done.stdout, name)

    def test_load_generator_has_a_manual_page(self):
        page = self.share / "man/man1/vigil-bench.1"
        done = output("man", "--warnings", "-l", str(page), env={"MANWIDTH": "80", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"})
        self.assertEqual(done.stderr, "")
        for part in ("VIGIL-BENCH(1)", "kube-watch", "--watch-keys CHOICE", "--await-events", "EXIT STATUS", "vigil-serve(8)"):
            self.assertIn(part, done.stdout)

    def test_main_manual_page_refers_to_the_others(self):
        page = self.share / "man/man1/vigil.1"
        done = output("man", "--warnings", "-l", str(page),
                      env={"MANWIDTH": "100", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"})
        self.assertEqual(done.stderr, "")
        for part in ("VIGIL(1)", "vigil COMMAND", "serve", "completion", "EXIT STATUS", "vigil-serve(8)",
                     "vigil-repair(8)", "vigil-salvage(8)", "vigil-kube-watch(8)", "vigil-cel(8)"):
            self.assertIn(part, done.stdout)

    def test_shells_accept_the_completions(self):
        output("bash", "-n", str(self.share / "bash-completion/completions/vigil"))
        output("zsh", "-n", str(self.share / "zsh/site-functions/_vigil"))
        fish = self.share / "fish/vendor_completions.d/vigil.fish"
        offered = output("fish", "-c", f"source {fish}; complete -C 'vigil serve --log-level '",
                         env={"HOME": str(self.scratch), "PATH": f"{self.scratch}/usr/bin:/usr/bin:/bin"}).stdout
        self.assertEqual({line.split("\t")[0] for line in offered.splitlines()},
                         {"debug", "info", "warn", "error", "panic", "fatal"})

    def test_shells_complete_the_load_generator(self):
        bash, zsh = self.share / "bash-completion/completions/vigil-bench", self.share / "zsh/site-functions/_vigil-bench"
        fish = self.share / "fish/vendor_completions.d/vigil-bench.fish"
        output("bash", "-n", str(bash))
        output("zsh", "-n", str(zsh))
        env = {"HOME": str(self.scratch), "PATH": f"{self.scratch}/usr/bin:/usr/bin:/bin"}
        offered = output("bash", "-c", f"""source {bash}; COMP_LINE='vigil-bench kube-'; COMP_WORDS=(vigil-bench kube-); COMP_CWORD=1
            _vigil-bench vigil-bench kube- vigil-bench; echo "${{COMPREPLY[@]}}" """, env=env).stdout
        self.assertEqual(offered, "kube-load kube-list kube-watch kube-start kube-renew kube-scale\n")
        for line, expected in (("put --keys s", {"sequential", "shuffled"}), ("put --watch-", {"--watch-keys"}), ("ki", set()),
                               ("put --json --watche", {"--watchers"})):
            offered = output("fish", "-c", f"source {fish}; complete -C 'vigil-bench {line}'", env=env).stdout
            self.assertEqual({word.split("\t")[0] for word in offered.splitlines()}, expected, line)

    def test_units_name_installed_programs(self):
        for name in ("vigil", "vigil-as-etcd"):
            unit = (self.scratch / f"usr/lib/systemd/system/{name}.service").read_text()
            program = re.search(r"^ExecStart=(\S+)", unit, re.M).group(1)
            self.assertTrue((self.scratch / program.lstrip("/")).exists(), program)
            self.assertNotIn("@", unit.replace("@system-service", "").replace("@privileged", "").replace("@resources", ""))

    @unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd-analyze")
    def test_systemd_unit_has_low_exposure(self):
        unit = self.scratch / "usr/lib/systemd/system/vigil.service"
        report = output("systemd-analyze", "security", "--offline=true", "--no-pager", str(unit)).stdout
        exposure = float(re.search(r"exposure level for vigil.service: ([\d.]+)", report).group(1))
        self.assertLess(exposure, 2.0)

    def test_sample_configuration_is_accepted(self):
        text = (self.share / "doc/vigil/vigil.yml").read_text()
        path, blocked = self.scratch / "all.yml", self.scratch / "file"
        blocked.write_text("not a directory")
        # All settings, including the commented ones. They must be valid; the server does not start, because its data
        # directory is a file.
        path.write_text(re.sub(r"^#(?! )|^#(?=  )", "", text, flags=re.M)
                        .replace("/var/lib/vigil", str(blocked)))
        done = subprocess.run([SUBJECT, "serve", "--config-file", str(path)], capture_output=True,
                              text=True, timeout=30, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertNotIn("yaml:", done.stderr)
        self.assertNotIn("unrecognized setting", done.stderr)


if __name__ == "__main__":
    unittest.main()
