#!/usr/bin/python3
"""The libraries as make install installs them: programs can be built with them and run, and their symbols,
headers and manual pages belong together."""
import base64
import json
import os
import re
import select
import subprocess
import sys
import unittest
import urllib.request

from installed import SANITIZED, InstalledTest, blocks_of_c, output
from kube import KubeServer
from server import ROOT, only_vigil

sys.path.insert(0, str(ROOT / "tools"))
import public_headers  # noqa: E402

LIBRARIES = public_headers.LIBRARIES
VERSIONS = {"libvigil": "VIGIL_1", "libvigil-kube": "VIGIL_KUBE_1", "libvigil-embed": "VIGIL_EMBED_1"}
# Together, without debug information. With sanitizers code is about ten times as large, and nothing is left out; `make
# bench` measures the libraries as they are installed.
STRIPPED_BYTES_MAX = 900 * 1024 * (12 if SANITIZED else 1)
# Functions of the C library whose memory could not be given back to the program's own allocator.
ALLOCATING = re.compile(r" U (?:__)?(strndup|v?asprintf|getline|getdelim|realpath|reallocarray|posix_memalign|memalign|valloc|"
                        r"open_memstream|open_wmemstream|scandir|get_current_dir_name|tempnam|wcsdup)(?:_chk)?@", re.M)

# What the fragments of docs/client.md and docs/kube-client.md use without declaring it.
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
KUBE_FRAGMENT = """#include <stdio.h>
#include <stdlib.h>
#include <vigil/client.h>
#include <vigil/kube.h>
static vigil_kube *kube;
static vigil_kube_options options;
static vigil_kube_target target;
static vigil_kube_watch_options watch_options;
static vigil_kube_watch *watch;
static vigil_kube_informer *informer;
static vigil_kube_objects objects;
static vigil_kube_leader_options leader_options;
static vigil_kube_candidate *candidate;
static vigil_work_queue *queue;
static vigil_bytes json, changed;
static vigil_error error;
static const vigil_kube_object *object;
static const char *version;
{}
void fragment(void)
{{
{}
}}
"""


@only_vigil
class Libraries(InstalledTest):
    """Both of them."""

    def declared_functions(self, library):
        whole = [library, *(other for other in LIBRARIES if other.name in library.contains)]
        headers = [header for part in whole for header in public_headers.header_files(part, self.include)]
        texts = [(self.include / "vigil" / header).read_text() for header in headers]
        return {name for text in texts for name in re.findall(r"VIGIL_API[^;]*?\b(vigil_\w+)\(", text)}

    def dynamic_symbols(self, library, *flags):
        return output("nm", "-D", *flags, str(self.lib / f"{library.name}.so.1")).stdout

    def test_exported_symbols_are_those_of_the_headers(self):
        for library in LIBRARIES:
            with self.subTest(library.name):
                version, declared = VERSIONS[library.name], self.declared_functions(library)
                symbols = self.dynamic_symbols(library, "--defined-only")
                exported = set(re.findall(rf" T (\w+)@@{version}$", symbols, re.M))
                self.assertEqual(" ".join(sorted(declared - exported)), "", "are declared as VIGIL_API, and not implemented "
                                 f"or not in {library.symbols.relative_to(ROOT)}")
                others = set(re.findall(r"^\w+ [A-Z] ((?!VIGIL_)\S+)$", symbols, re.M)) - {f"{n}@@{version}" for n in declared}
                self.assertLessEqual(others, {"vigil_private_hooks@@VIGIL_PRIVATE_1"}, "visible, and in no header")

    def test_static_libraries_have_the_same_symbols_as_the_shared_ones(self):
        for library in LIBRARIES:
            with self.subTest(library.name):
                shared = self.dynamic_symbols(library, "--defined-only")
                static = output("nm", "--defined-only", "--extern-only", str(self.lib / f"{library.name}.a")).stdout
                self.assertEqual(set(re.findall(r" T (\w+)$", static, re.M)), set(re.findall(r" T (\w+)@@", shared)))

    def test_memory_is_only_taken_from_functions_that_can_be_replaced(self):
        for library in LIBRARIES:
            self.assertEqual(ALLOCATING.findall(self.dynamic_symbols(library, "--undefined-only")), [], library.name)

    def test_headers_compile_as_c99_and_as_cpp(self):
        for header in self.include.rglob("*.h"):
            for compiler, language in (("cc", "gnu99" if header.name == "uv.h" else "c99"), ("c++", "c++11")):
                output(compiler, f"-std={language}", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x",
                       "c" if compiler == "cc" else "c++", f"-I{self.include}", str(header))

    def test_all_headers_are_installed(self):
        for library in LIBRARIES:
            self.assertEqual(public_headers.header_files(library, self.include), public_headers.header_files(library))

    def test_every_function_has_a_manual_page(self):
        env = {"MANPATH": str(self.share / "man"), "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}
        for library in LIBRARIES:
            for name in self.declared_functions(library):
                self.assertTrue((self.share / f"man/man3/{name}.3").exists(), name)
        for name, part in (("libvigil", "pkg-config"), ("vigil_watch_new", "vigil_watch_fn"),
                           ("vigil_watch_options", "buffer_bytes"), ("libvigil-kube", "--libs libvigil-kube"),
                           ("vigil_kube_watch_new", "vigil_kube_watch_fn")):
            done = output("man", "--warnings", "3", name, env=env)
            self.assertEqual(done.stderr, "")
            self.assertIn(part, done.stdout)

    def test_examples_are_installed(self):
        for example in (ROOT / "examples").rglob("[!.]*"):
            if example.is_file():
                installed = self.share / "doc/libvigil/examples" / example.relative_to(ROOT / "examples")
                self.assertEqual(installed.read_bytes(), example.read_bytes())

    def test_versions_agree(self):
        program, source = self.scratch / "version", self.scratch / "version.c"
        source.write_text("#include <stdio.h>\n#include <vigil/vigil.h>\nint main(void) { return puts(vigil_version()) < 0; }\n")
        self.build(program, source)
        version = output(str(program), env=dict(os.environ, LD_LIBRARY_PATH=str(self.lib))).stdout.strip()
        for library in LIBRARIES:
            self.assertEqual(self.pkg_config("--modversion", library.name).strip(), version)
            self.assertTrue((self.lib / f"{library.name}.so.{version}").exists())

    def test_libraries_are_small(self):
        sizes = {}
        for library in (library for library in LIBRARIES if not library.contains):  # the others have a store in them
            stripped = self.scratch / "stripped"
            output("strip", "-o", str(stripped), str(self.lib / f"{library.name}.so.1"))
            sizes[library.name] = stripped.stat().st_size
        self.assertLessEqual(sum(sizes.values()), STRIPPED_BYTES_MAX, sizes)


@only_vigil
class Libvigil(InstalledTest):
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
        self.watch_once(program, LD_LIBRARY_PATH=str(self.lib))

    def test_example_with_the_static_library(self):
        program = self.scratch / "watch"
        (self.lib / "libvigil.so").unlink()
        self.build(program, ROOT / "examples/watch.c", "--static")
        self.watch_once(program)

    def test_example_with_cmake(self):
        programs = self.build_with_cmake(f"""find_package(libvigil 1.0 REQUIRED)
foreach(kind libvigil static)
    add_executable(watch_${{kind}} {ROOT}/examples/watch.c)
    target_link_libraries(watch_${{kind}} libvigil::${{kind}})
endforeach()
find_package(libvigil 2.0 QUIET)
if(libvigil_FOUND)
    message(FATAL_ERROR "another major version is accepted")
endif()
""")
        for kind in ("libvigil", "static"):
            self.watch_once(programs / f"watch_{kind}")

    def test_first_program_of_the_documentation(self):
        """It resumes after the server was restarted."""
        server = self.serving()
        program, source = self.scratch / "first", self.scratch / "first.c"
        source.write_text(blocks_of_c("client.md")[0].replace("http://127.0.0.1:2379", server.url))
        self.build(program, source, standard=())
        with self.running(program) as lines:
            while not select.select([lines], [], [], 0.2)[0]:  # the watch may not have begun yet
                self.put(server, "config/first", "value")
            for value in ("red", "blue"):
                self.put(server, "config/color", value)
                self.assertEqual(next(line for line in lines if "config/first" not in line),
                                 f"put config/color = {value}\r\n")
                server.stop()
                server.start()

    def test_fragments_of_the_documentation_compile(self):
        self.check_fragments(blocks_of_c("client.md")[1:], FRAGMENT)


# Counts the memory that both libraries hold.
KUBE_PROGRAM = """#include <stdio.h>
#include <stdlib.h>
#include <vigil/client.h>
#include <vigil/kube.h>
static long held;
static void *allocate(size_t bytes)
{
    held++;
    return malloc(bytes);
}
static void *resize(void *memory, size_t bytes)
{
    held += !memory;
    return realloc(memory, bytes);
}
static void release(void *memory)
{
    held -= memory != NULL;
    free(memory);
}
int main(void)
{
    vigil_kube_object *object;
    vigil_work_queue *queue;
    vigil_set_allocator(allocate, resize, release);
    puts(vigil_code_name(vigil_kube_object_new(vigil_text("{}"), &object)));
    if (vigil_work_queue_new(NULL, &queue) != VIGIL_OK ||
        vigil_kube_object_new(vigil_text("{\\"metadata\\": {\\"name\\": \\"first\\"}}"), &object) != VIGIL_OK)
        return 1;
    printf("%.*s\\n", VIGIL_ARGS(vigil_kube_object_name(object)));
    puts(held >= 2 ? "counted" : "not counted");
    vigil_kube_object_unref(object);
    vigil_work_queue_free(queue);
    printf("%ld left\\n", held);
    return 0;
}
"""
KUBE_PRINTS = "VIGIL_ERROR_PROTOCOL\nfirst\ncounted\n0 left\n"


@only_vigil
class LibvigilKube(InstalledTest):
    def setUp(self):
        super().setUp()
        self.source, self.program = self.scratch / "kube.c", self.scratch / "kube"
        self.source.write_text(KUBE_PROGRAM)

    def run_with_libraries(self, program):
        return output(str(program), env=dict(os.environ, LD_LIBRARY_PATH=str(self.lib))).stdout

    def test_program_with_the_shared_library(self):
        """The allocator of libvigil is that of libvigil-kube, too."""
        self.build(self.program, self.source, library="libvigil-kube")
        self.assertEqual(self.run_with_libraries(self.program), KUBE_PRINTS)

    def test_program_with_the_static_library(self):
        for name in ("libvigil.so", "libvigil-kube.so"):
            (self.lib / name).unlink()
        self.build(self.program, self.source, "--static", library="libvigil-kube")
        self.assertEqual(output(str(self.program)).stdout, KUBE_PRINTS)

    def test_program_with_cmake(self):
        programs = self.build_with_cmake(f"""find_package(libvigil 1.0 REQUIRED COMPONENTS kube)
foreach(kind kube kube_static)
    add_executable(${{kind}} {self.source})
    target_link_libraries(${{kind}} libvigil::${{kind}})
endforeach()
find_package(libvigil QUIET COMPONENTS other)
if(libvigil_FOUND)
    message(FATAL_ERROR "an unknown component is accepted")
endif()
""")
        for kind in ("kube", "kube_static"):
            self.assertEqual(output(str(programs / kind)).stdout, KUBE_PRINTS)

    def test_first_program_of_the_documentation(self):
        """It continues after the server was restarted."""
        server = KubeServer(self.scratch / "data", ["--kube-bootstrap=false"])  # which has config maps, too
        self.addCleanup(server.kill)
        self.addCleanup(server.close)
        server.start()
        self.source.write_text(blocks_of_c("kube-client.md")[0])
        self.build(self.program, self.source, library="libvigil-kube", standard=())
        server.put("configmaps", "color", kind="ConfigMap")
        with self.running(self.program, KUBECONFIG=server.kubeconfig) as lines:
            self.assertEqual(next(lines), "added default/color\r\n")
            for value in ("red", "blue"):
                server.put("configmaps", "color", kind="ConfigMap", data={"value": value})
                self.assertEqual(next(lines), "updated default/color\r\n")
                server.close()
                server.stop()
                server.start()
            server.delete("configmaps", "color")
            self.assertEqual(next(lines), "deleted default/color\r\n")

    def test_fragments_of_the_documentation_compile(self):
        self.check_fragments(blocks_of_c("kube-client.md")[1:], KUBE_FRAGMENT)

    def test_library_depends_on_little(self):
        """Of libvigil it uses the allocator and the names of codes, so that the two may be of different versions."""
        library = str(self.lib / "libvigil-kube.so.1")
        needed = set(re.findall(r"NEEDED.*\[(.*?)\.so", output("readelf", "-d", library).stdout))
        self.assertLessEqual(needed - {"libasan", "libubsan", "libtsan"},
                             {"libvigil", "libyaml-0", "libssl", "libcrypto", "libresolv", "libc", "ld-linux-x86-64", "ld-linux-aarch64"})
        self.assertEqual(re.findall(r"R(?:UN)?PATH.*\[(.*)\]", output("readelf", "-d", library).stdout), ["$ORIGIN"])
        imported = set(re.findall(r" U (vigil_\w+)@", output("nm", "-D", "--undefined-only", library).stdout))
        self.assertLessEqual(imported, {"vigil_private_hooks", "vigil_code_name"})


if __name__ == "__main__":
    unittest.main()
