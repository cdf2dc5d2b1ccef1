#!/usr/bin/python3
"""The files of make install: all exist, and the programs that use them accept them."""
import base64
import json
import os
import pathlib
import re
import select
import shutil
import subprocess
import unittest
import urllib.request

from server import ROOT, SUBJECT, LiveTest, only_vigil


def output(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, **options)


# What the fragments of the documentation use without declaring it.
FRAGMENT = """#include <stdio.h>
#include <stdlib.h>
#include <vigil/vigil.h>
static vigil_client *client;
static vigil_options options;
static vigil_watch_options watch_options;
static vigil_range_request request;
static vigil_lease *lease;
static vigil_watch *watch;
static vigil_queue *queue;
static const vigil_item *item;
static vigil_error error;
static int64_t lease_id;
static vigil_object_decode decode;
static vigil_object_matches matches;
static vigil_object_watch_fn on_batch;
static vigil_v2_watch_fn on_v2_batch;
static vigil_v2_include include;
static void *user;
{}
void fragment(void)
{{
{}
}}
"""


def sanitizers():
    return ["-fsanitize=address,undefined"] if b"__asan_init" in pathlib.Path(SUBJECT).read_bytes() else []


@only_vigil
class Install(LiveTest):
    def setUp(self):
        super().setUp()
        build = pathlib.Path(SUBJECT).parent
        output(str(ROOT / "tools/install"), str(build), "/usr", str(self.scratch), "/etc", cwd=ROOT)
        self.share = self.scratch / "usr/share"

    def test_program_runs_under_both_names(self):
        self.assertIn("vigil", output(str(self.scratch / "usr/bin/vigil"), "version").stdout)
        etcd = self.scratch / "usr/libexec/vigil/etcd"
        self.assertIn("etcd Version: 3.", output(str(etcd), "--version").stdout)

    def build(self, program, source, *flags, standard=("-std=c99", "-D_POSIX_C_SOURCE=200809L")):
        """Builds in the way of a program that is installed elsewhere: only with what pkg-config says."""
        said = output("pkg-config", f"--define-variable=prefix={self.scratch}/usr", "--cflags", "--libs", *flags,
                      "libvigil", env={"PKG_CONFIG_PATH": f"{self.scratch}/usr/lib/pkgconfig", "PATH": "/usr/bin:/bin"})
        output("cc", *standard, "-Wall", "-Werror", "-o", str(program), str(source), *sanitizers(), *said.stdout.split())

    def put(self, server, key, value):
        body = {"key": base64.b64encode(key.encode()).decode(), "value": base64.b64encode(value.encode()).decode()}
        with urllib.request.urlopen(f"{server.url}/v3/kv/put", json.dumps(body).encode(), 30):
            pass

    def watch_once(self, program, **env):
        """Runs the example until it has printed a change."""
        server = self.serving(self.scratch / f"data-{program.name}")
        with subprocess.Popen([str(program), server.url, "k"], stdout=subprocess.PIPE, text=True,
                              env=dict(os.environ, **env)) as watch:
            self.assertRegex(watch.stdout.readline(), r"^watching from revision \d+$")
            self.put(server, "k1", "v1")
            self.assertRegex(watch.stdout.readline(), r"^put k1 = v1 \(revision \d+\)$")
            watch.terminate()
        self.assertEqual(watch.returncode, 0)

    def test_example_with_the_shared_library(self):
        program = self.scratch / "watch"
        self.build(program, ROOT / "examples/watch.c")
        self.watch_once(program, LD_LIBRARY_PATH=f"{self.scratch}/usr/lib")

    def test_example_with_the_static_library(self):
        program = self.scratch / "watch"
        (self.scratch / "usr/lib/libvigil.so").unlink()
        self.build(program, ROOT / "examples/watch.c", "--static")
        self.watch_once(program)

    def test_example_with_cmake(self):
        project = self.scratch / "project"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(f"""cmake_minimum_required(VERSION 3.20)
project(consumer C)
find_package(libvigil 1.0 REQUIRED)
foreach(kind libvigil static)
    add_executable(watch_${{kind}} {ROOT}/examples/watch.c)
    target_link_libraries(watch_${{kind}} libvigil::${{kind}})
endforeach()
find_package(libvigil 2.0 QUIET)
if(libvigil_FOUND)
    message(FATAL_ERROR "another major version is accepted")
endif()
""")
        flags = f"-DCMAKE_C_FLAGS={' '.join(sanitizers())}"
        output("cmake", "-S", str(project), "-B", str(project / "b"), "-G", "Ninja", flags,
               f"-DCMAKE_PREFIX_PATH={self.scratch}/usr")
        output("ninja", "-C", str(project / "b"))
        for kind in ("libvigil", "static"):
            self.watch_once(project / f"b/watch_{kind}")

    def test_versions_agree(self):
        program, source = self.scratch / "version", self.scratch / "version.c"
        source.write_text("#include <stdio.h>\n#include <vigil/vigil.h>\nint main(void) { return puts(vigil_version()) < 0; }\n")
        self.build(program, source)
        version = output(str(program), env=dict(os.environ, LD_LIBRARY_PATH=f"{self.scratch}/usr/lib")).stdout.strip()
        packaged = output("pkg-config", "--modversion", "libvigil",
                          env={"PKG_CONFIG_PATH": f"{self.scratch}/usr/lib/pkgconfig", "PATH": "/usr/bin:/bin"}).stdout.strip()
        self.assertEqual(version, packaged)
        self.assertTrue((self.scratch / f"usr/lib/libvigil.so.{version}").exists())

    def test_first_program_of_the_documentation(self):
        """It resumes after the server was restarted."""
        server = self.serving()
        text = (ROOT / "docs/client.md").read_text()
        program, source = self.scratch / "first", self.scratch / "first.c"
        source.write_text(re.search(r"^```c\n(.*?)^```", text, re.S | re.M)[1].replace("http://127.0.0.1:2379", server.url))
        self.build(program, source, standard=())
        terminal, its_end = os.openpty()  # so that the program writes line by line
        with subprocess.Popen([str(program)], stdin=subprocess.PIPE, stdout=its_end, stderr=subprocess.DEVNULL,
                              env=dict(os.environ, LD_LIBRARY_PATH=f"{self.scratch}/usr/lib")) as first:
            os.close(its_end)
            with open(terminal, encoding="ascii", newline="\r\n") as lines:
                while not select.select([terminal], [], [], 0.2)[0]:  # the watch may not have begun yet
                    self.put(server, "config/first", "value")
                for value in ("red", "blue"):
                    self.put(server, "config/color", value)
                    self.assertEqual(next(line for line in lines if "config/first" not in line),
                                     f"put config/color = {value}\r\n")
                    server.stop()
                    server.start()
                first.stdin.close()
        self.assertEqual(first.returncode, 0)

    def test_fragments_of_the_documentation_compile(self):
        text = (ROOT / "docs/client.md").read_text()
        for number, block in enumerate(re.findall(r"^```c\n(.*?)^```", text, re.S | re.M)[1:]):
            functions = re.findall(r"^static .*?^}\n", block, re.S | re.M)
            for function in functions:
                block = block.replace(function, "")
            source = self.scratch / f"fragment{number}.c"
            source.write_text(FRAGMENT.format("".join(functions), block.replace("…", "")))
            done = subprocess.run(["cc", "-Wall", "-Wno-unused", "-fsyntax-only", f"-I{self.scratch}/usr/include", str(source)],
                                  capture_output=True, text=True, timeout=60, check=False, env=dict(os.environ, LC_ALL="C"))
            # Functions of the program may be missing, but none of the library.
            faults = [line for line in done.stderr.splitlines() if re.search(r"error:|warning:", line)
                      and not re.search(r"implicit declaration of function '(?!vigil)", line)]
            self.assertEqual(faults, [])

    def declared_functions(self):
        declared = set()
        for header in (self.scratch / "usr/include/vigil").glob("*.h"):
            declared |= set(re.findall(r"VIGIL_API[^;]*?\b(vigil_\w+)\(", header.read_text()))
        return declared

    def test_exported_symbols_are_those_of_the_headers(self):
        declared = self.declared_functions()
        symbols = output("nm", "-D", "--defined-only", str(self.scratch / "usr/lib/libvigil.so.1")).stdout
        exported = set(re.findall(r" T (\w+)@@VIGIL_1$", symbols, re.M))
        self.assertEqual(exported, declared)
        self.assertEqual(set(re.findall(r" [A-Z] (?!VIGIL_1$)(\S+)$", symbols, re.M)), {f"{n}@@VIGIL_1" for n in declared})

    def test_headers_compile_as_c99_and_as_cpp(self):
        for header in (self.scratch / "usr/include/vigil").glob("*.h"):
            for compiler, language in (("cc", "gnu99" if header.name == "uv.h" else "c99"), ("c++", "c++11")):
                output(compiler, f"-std={language}", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x",
                       "c" if compiler == "cc" else "c++", f"-I{self.scratch}/usr/include", str(header))

    def test_manual_pages_are_complete_and_without_warnings(self):
        for name, parts in (("serve", ("CONFIGURATION FILE", "SIGNALS")), ("import", ("SOURCE",)),
                            ("snapshot", ("restore|status FILE", "--skip-hash-check")),
                            ("repair", ("WHAT IS LOST", "--accept-loss"))):
            page = self.share / f"man/man8/vigil-{name}.8"
            done = output("man", "--warnings", "-l", str(page),
                          env={"MANWIDTH": "100", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"})
            self.assertEqual(done.stderr, "")
            for part in ("--data-dir", "EXIT STATUS", *parts):
                self.assertIn(part, done.stdout)

    def test_every_function_of_the_library_has_a_manual_page(self):
        env = {"MANPATH": str(self.share / "man"), "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}
        for name in self.declared_functions():
            self.assertTrue((self.share / f"man/man3/{name}.3").exists(), name)
        for name, part in (("libvigil", "pkg-config"), ("vigil_watch_new", "vigil_watch_fn"),
                           ("vigil_watch_options", "buffer_bytes")):
            done = output("man", "--warnings", "3", name, env=env)
            self.assertEqual(done.stderr, "")
            self.assertIn(part, done.stdout)

    def test_examples_are_installed(self):
        for example in (ROOT / "examples").glob("*.c"):
            self.assertEqual((self.share / "doc/libvigil/examples" / example.name).read_bytes(), example.read_bytes())

    def test_main_manual_page_refers_to_the_others(self):
        page = self.share / "man/man1/vigil.1"
        done = output("man", "--warnings", "-l", str(page),
                      env={"MANWIDTH": "100", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"})
        self.assertEqual(done.stderr, "")
        for part in ("VIGIL(1)", "vigil COMMAND", "serve", "completion", "EXIT STATUS", "vigil-serve(8)",
                     "vigil-repair(8)"):
            self.assertIn(part, done.stdout)

    def test_shells_accept_the_completions(self):
        output("bash", "-n", str(self.share / "bash-completion/completions/vigil"))
        output("zsh", "-n", str(self.share / "zsh/site-functions/_vigil"))
        fish = self.share / "fish/vendor_completions.d/vigil.fish"
        offered = output("fish", "-c", f"source {fish}; complete -C 'vigil serve --log-level '",
                         env={"HOME": str(self.scratch), "PATH": "/usr/bin:/bin"}).stdout
        self.assertEqual({line.split("\t")[0] for line in offered.splitlines()},
                         {"debug", "info", "warn", "error", "panic", "fatal"})

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
