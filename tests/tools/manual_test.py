#!/usr/bin/python3
"""Every public name of the libraries has a comment and a manual page, and the pages have no warnings and fit 80 columns."""
import importlib.machinery
import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools/write-manual"
sys.path.insert(0, str(ROOT / "tools"))
import public_headers  # noqa: E402


def load():
    loader = importlib.machinery.SourceFileLoader("write_manual", str(TOOL))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


MANUAL = load()
ENVIRONMENT = {"MANWIDTH": "80", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}


def output(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=ENVIRONMENT)
    return done.stdout, done.stderr


def header_of(text):
    return public_headers.parse_header("x.h", "/* A header. */\n\n" + text)


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name) / "man3"
        subprocess.run([str(TOOL), str(cls.folder)], check=True, timeout=60)
        cls.headers = [header for library in public_headers.LIBRARIES for header in public_headers.read_headers(library)]
        cls.pages = [cls.folder / (MANUAL.page_name(header.name) + ".3") for header in cls.headers]
        cls.texts = {page.stem: output("man", "--warnings", "-l", str(page)) for page in cls.pages}

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def test_every_public_name_has_a_comment(self):
        self.assertEqual(MANUAL.missing_comments(self.headers), [])

    def test_every_exported_function_is_read(self):
        """The reader of the headers has overlooked none."""
        for header in self.headers:
            text = (public_headers.INCLUDE / "vigil" / header.name).read_text()
            declared = re.findall(r"^VIGIL_API[^;]*?\b(vigil_\w+)\(", text, re.M)
            self.assertEqual([d.name for d in header.declarations if d.exported], declared)

    def test_every_public_name_leads_to_its_page(self):
        for header in self.headers:
            page = MANUAL.page_name(header.name)
            for declaration in header.declarations:
                if declaration.name in ("", *self.texts) or MANUAL.is_internal(declaration):
                    continue
                alias = (self.folder / f"{declaration.name}.3").read_text()
                self.assertEqual(alias, f".so man3/{page}.3\n")
                self.assertIn(declaration.name, self.texts[page][0])

    def test_every_constant_is_on_its_page(self):
        for header in self.headers:
            text = self.texts[MANUAL.page_name(header.name)][0]
            for code in (d.code for d in header.declarations if d.kind == "enum"):
                for constant in re.findall(r"VIGIL_\w+", public_headers.COMMENT.sub("", code)):
                    self.assertIn(constant, text)

    def test_overviews_list_every_page_of_their_library(self):
        for library in public_headers.LIBRARIES:
            description = self.texts[library.name][0].partition("DESCRIPTION")[2].partition("EXAMPLE")[0].partition("SEE ALSO")[0]
            pages = {MANUAL.page_name(name) for name in public_headers.header_files(library)} - {library.name}
            self.assertEqual({page for page in pages if f"{page}(3)" not in description}, set())

    def test_overviews_include_every_header_of_their_library(self):
        """Only the adapters are left out, which need the headers of an event loop."""
        for library in public_headers.LIBRARIES:
            overview = next(header for header in self.headers if header.name == library.overview)
            others = {f"vigil/{name}" for name in public_headers.header_files(library)} - {f"vigil/{library.overview}"}
            adapters = {name for name in others if re.search(r"\b(epoll|poll|uv)\.h$", name)}
            contained = {f"vigil/{name}" for other in public_headers.LIBRARIES if other.name in library.contains
                         for name in public_headers.header_files(other)}
            self.assertEqual(set(overview.includes) - contained, others - adapters)

    def test_version_scripts_have_the_functions_of_the_headers(self):
        for library in public_headers.LIBRARIES:
            declared = {d.name for header in public_headers.read_all_headers(library) for d in header.declarations if d.exported}
            listed = {name for name in library.symbols_in_map() if not name.startswith(public_headers.PRIVATE)}
            path = library.symbols.relative_to(ROOT)
            self.assertEqual(" ".join(sorted(declared - listed)), "", f"are declared as VIGIL_API, and not in {path}")
            self.assertEqual(" ".join(sorted(listed - declared)), "", f"are in {path}, and in no header of {library.name}")

    def test_no_warnings(self):
        for page in self.pages:
            self.assertEqual(self.texts[page.stem][1], "")
            self.assertEqual(output("mandoc", "-Tlint", "-W", "warning", str(page)), ("", ""))
            for device in ("ascii", "utf8"):
                self.assertEqual(output("groff", "-ww", "-man", f"-T{device}", str(page))[1], "", page.name)

    def test_pages_fit_80_columns(self):
        wide = [f"{name}: {line}" for name, (text, _) in self.texts.items() for line in text.split("\n") if len(line) > 80]
        self.assertEqual(wide, [])

    def test_pages_have_their_sections(self):
        for header in self.headers:
            text = self.texts[MANUAL.page_name(header.name)][0]
            wanted = ["NAME", "SYNOPSIS", "DESCRIPTION", "SEE ALSO"]
            if any(d.returns in ("vigil_call *", "vigil_kube_call *") for d in header.declarations):
                wanted += ["FUNCTIONS", "RETURN VALUE", "ERRORS", "THREADS"]
            if "Example: " in header.comment:
                wanted += ["EXAMPLE"]
            for section in wanted:
                self.assertRegex(text, rf"(?m)^{section}$", header.name)


class Parts(unittest.TestCase):
    def test_missing_comments_are_found(self):
        header = header_of("/* Has one. */\nVIGIL_API int vigil_a(void);\nVIGIL_API int vigil_b(void);\n\n/* Apart. */\n\n"
                           "typedef struct vigil_c {\n    int a; /* not above */\n} vigil_c;\n")
        self.assertEqual([fault.split(": ")[1] for fault in MANUAL.missing_comments([header])],
                         ["vigil_b has no comment", "vigil_c has no comment"])

    def test_comment_after_a_declaration_is_refused(self):
        with self.assertRaisesRegex(public_headers.HeaderError, "x.h:3: put the comment above"):
            header_of("VIGIL_API int vigil_a(void); /* after */\n")

    def test_unknown_declaration_is_refused(self):
        with self.assertRaisesRegex(public_headers.HeaderError, "x.h:3: cannot read"):
            header_of("int vigil_a(void);\n")

    def test_long_comments_of_fields_are_wrapped_beside_them(self):
        lines = MANUAL.layout_type("enum vigil_a {\n    VIGIL_A, /* " + "word " * 20 + "*/\n    VIGIL_B /* b */\n}")
        self.assertEqual(lines[0], "enum vigil_a {")
        self.assertTrue(all(len(line) <= MANUAL.WIDTH for line in lines))
        self.assertRegex(lines[1], r"^    VIGIL_A,  +/\* word")
        self.assertRegex(lines[-2], r"^    VIGIL_B  +/\* b \*/$")
        self.assertEqual(lines[-1], "};")

    def test_wide_table_becomes_a_list_and_a_drawing_stays(self):
        names = MANUAL.Names("page", {})
        wide = "    left   " + "right " * 12 + "\n    more   text"
        self.assertIn(".TP", MANUAL.render(wide, names))
        self.assertEqual(MANUAL.render("    a ──► b ⇄ c", names), [".PP", ".RS 4", ".EX", "a \\-\\-> b<\\->c", ".EE", ".RE"])

    def test_lists_have_bullets(self):
        self.assertEqual(MANUAL.render("Text:\n\n- One\n  more.\n- Two.", MANUAL.Names("page", {})),
                         [".PP", "Text:", ".IP \\(bu 2", "One more.", ".IP \\(bu 2", "Two."])

    def test_macro_is_a_function_without_types(self):
        macro = header_of("/* Text. */\n#define VIGIL_A(x, y) \\\n    f(x, y)\n").declarations[0]
        self.assertEqual((macro.kind, macro.name, macro.comment), ("macro", "VIGIL_A", "Text."))
        self.assertEqual(MANUAL.wrap_prototype(macro), ["\\fBVIGIL_A(\\fIx\\fB, \\fIy\\fB)\\fP"])

    def test_names_refer_to_their_pages(self):
        names = MANUAL.Names("vigil_a", {"vigil_a_new": "vigil_a", "vigil_b_new": "vigil_b"})
        self.assertEqual(names.prose("See vigil_a_new, vigil_b_new, vigil/c.h. VIGIL_OK is 0, not -1."),
                         ["See \\%\\fBvigil_a_new\\fP(), \\%\\fBvigil_b_new\\fP(3), \\%\\fBvigil_c\\fP(3).",
                          "\\%\\fBVIGIL_OK\\fP is 0, not \\-1."])
        self.assertEqual(names.found, {"vigil_b", "vigil_c"})
        self.assertEqual(names.prose("Set send_bytes_max first."), ["Set \\%send_bytes_max first."])

    def test_text_cannot_become_a_request(self):
        self.assertEqual(MANUAL.guard(".so"), "\\&.so")
        self.assertEqual(MANUAL.escape_code("'a\\n'"), "\\(aqa\\en\\(aq")


if __name__ == "__main__":
    unittest.main()
