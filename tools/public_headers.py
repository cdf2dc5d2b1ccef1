"""Reads the installed headers of the libraries: what they declare, and the comment above each declaration.

Used by tools/write-manual and tools/check-abi. It reads the C that our headers contain (clang-format decides its
layout) and refuses the rest by file and line.
"""
import dataclasses
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]
INCLUDE = ROOT / "include"
MACRO = "macro "

COMMENT = re.compile(r"/\*.*?\*/", re.S)
SECTION = re.compile(r"^-- (.*) --$")
FUNCTION = re.compile(r"^(?P<type>.*?[\s*])(?P<name>vigil_\w+)\((?P<parameters>.*)\)$", re.S)
CALLBACK = re.compile(r"^typedef .*?\(\*(?P<name>vigil_\w+)\)\(", re.S)
OPAQUE = re.compile(r"^(?:typedef )?struct (?P<name>vigil_\w+)(?: (?P=name))?$")
BODY = re.compile(r"^(?:typedef )?(?P<kind>struct|enum|union)\s*(?P<name>vigil_\w+)?\s*\{.*\}\s*(?:vigil_\w+)?$", re.S)
PARAMETER = re.compile(r"^(?P<type>.*?)(?P<name>\w+)$", re.S)
CALLBACK_PARAMETER = re.compile(r"^(?P<type>.*?\(\*)(?P<name>\w+)(?P<rest>\).*)$", re.S)


class HeaderError(Exception):
    pass


@dataclasses.dataclass(frozen=True)
class Library:
    name: str  # libvigil: of its files, of its manual page, and of its package
    overview: str  # the header that includes the others
    pattern: str  # of the others, below include/vigil
    layer: str  # src/layer has its version script and its binary interface
    prefix: str  # of its calls
    contains: tuple = ()  # libraries whose functions it offers as well

    @property
    def symbols(self):
        return ROOT / f"src/{self.layer}/{self.name}.map"

    @property
    def interface(self):
        return ROOT / f"src/{self.layer}/{self.name}.abi"

    def symbols_in_map(self):
        return set(re.findall(r"^    (vigil_\w+);", self.symbols.read_text(), re.M))


LIBRARIES = (Library("libvigil", "vigil.h", "*.h", "client", "vigil_"),
             Library("libvigil-kube", "kube.h", "kube/*.h", "kubeclient", "vigil_kube_"),
             Library("libvigil-embed", "embed.h", "embed/*.h", "embed", "vigil_", ("libvigil",)))
OVERVIEWS = {library.overview: library for library in LIBRARIES}
# Symbols that one library has for the other; no header declares them.
PRIVATE = "vigil_private_"


@dataclasses.dataclass
class Declaration:
    kind: str  # function, macro, callback, struct, enum, union, opaque
    name: str  # "" for an enum without one
    code: str  # without VIGIL_API, without the body of a function, without the semicolon
    comment: str  # "" if there is none
    section: str  # the last heading above, or ""
    header: str  # client.h, kube/json.h
    line: int
    exported: bool = False  # a symbol of the library; the others are inline
    returns: str = ""  # of functions
    parameters: list = dataclasses.field(default_factory=list)  # of functions and macros: (before the name, name, after it)


@dataclasses.dataclass
class Header:
    name: str  # client.h, kube/json.h
    comment: str  # the one at its top
    includes: list  # "sys/epoll.h", "vigil/client.h"
    declarations: list


def comment_text(comment):
    """The text of a comment, without its frame. The indentation of its lines is kept."""
    lines = comment[2:-2].split("\n")
    lines = [lines[0].strip()] + [re.sub(r"^\s*\*? ?", "", line).rstrip() if line.lstrip().startswith("*") else line.strip()
                                  for line in lines[1:]]
    return "\n".join(lines).strip("\n ")


def one_line(code):
    return re.sub(r"\s+", " ", COMMENT.sub("", code)).strip()


def split_parameters(text):
    """Splits at the commas that are not inside parentheses."""
    parts, depth, begin = [], 0, 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append(text[begin:i])
            begin = i + 1
    return [part.strip() for part in [*parts, text[begin:]] if part.strip() not in ("", "void")]


def parse_parameter(text):
    found = CALLBACK_PARAMETER.match(text)
    if found:
        return found["type"], found["name"], found["rest"]
    found = PARAMETER.match(text)
    return found["type"], found["name"], ""


def without_directives(text):
    """Blanks preprocessor lines and the braces of extern "C"; line numbers stay as they are. Macros with parameters
    remain, without their text."""
    text = re.sub(r"^#define (VIGIL_\w+\([^)]*\)) (?:.*\\\n)*.*$",
                  lambda m: f"{MACRO}{m[1]};" + "\n" * m[0].count("\n"), text, flags=re.M)
    text = re.sub(r"^#ifdef __cplusplus\n(?:.*\n)*?#endif$", lambda m: "\n" * m[0].count("\n"), text, flags=re.M)
    return re.sub(r"^#(?:.*\\\n)*.*$", lambda m: "\n" * m[0].count("\n"), text, flags=re.M)


def end_of_declaration(text, begin):
    """Returns where a declaration ends: after its semicolon, or after the body of a function."""
    depth, i = 0, begin
    while i < len(text):
        if text.startswith("/*", i):
            i = text.index("*/", i) + 2
            continue
        depth += (text[i] == "{") - (text[i] == "}")
        if depth == 0 and (text[i] == ";" or (text[i] == "}" and text.startswith("static inline", begin))):
            return i + 1
        i += 1
    return None


def parse_declaration(code, **facts):
    exported = code.startswith("VIGIL_API ")
    inline = code.startswith("static inline ")
    if inline:
        code = code[len("static inline "):code.index("{")].strip()
    code = code.removeprefix("VIGIL_API ").removesuffix(";")
    plain = one_line(code)
    if code.startswith(MACRO):
        name, _, parameters = plain.removeprefix(MACRO).removesuffix(")").partition("(")
        return Declaration("macro", name, plain, parameters=[("", p, "") for p in split_parameters(parameters)], **facts)
    if found := CALLBACK.match(plain):
        return Declaration("callback", found["name"], plain, **facts)
    if found := BODY.match(code):
        return Declaration(found["kind"], found["name"] or "", code, **facts)
    if found := OPAQUE.match(plain):
        return Declaration("opaque", found["name"], plain, **facts)
    found = FUNCTION.match(plain)
    if not found or not (exported or inline):
        return None
    parameters = [parse_parameter(p) for p in split_parameters(found["parameters"])]
    return Declaration("function", found["name"], plain, exported=exported, returns=found["type"].strip(),
                       parameters=parameters, **facts)


def parse_header(name, text):
    includes = re.findall(r"^#include <([\w./]+)>", text, re.M)
    text = without_directives(text)
    header = Header(name, "", includes, [])
    section, comment, at = "", "", 0
    while found := re.compile(r"\S").search(text, at):
        # A comment belongs to a declaration only if no empty line is between them.
        if "\n\n" in text[at:found.start()]:
            comment = ""
        at = found.start()
        line = text.count("\n", 0, at) + 1
        if text.startswith("/*", at):
            if comment:
                raise HeaderError(f"{name}:{line}: two comments one after the other")
            end = text.index("*/", at) + 2
            comment = comment_text(text[at:end])
            if not header.comment and not header.declarations:
                header.comment, comment = comment, ""
            elif heading := SECTION.match(comment):
                section, comment = heading[1], ""
            at = end
            continue
        end = end_of_declaration(text, at)
        facts = {"comment": comment, "section": section, "header": name, "line": line}
        declaration = parse_declaration(text[at:end], **facts) if end else None
        if not declaration:
            raise HeaderError(f"{name}:{line}: cannot read this declaration")
        header.declarations.append(declaration)
        rest = re.compile(r"[^\n]*").match(text, end)
        if "/*" in rest[0]:
            raise HeaderError(f"{name}:{line}: put the comment above the declaration")
        comment, at = "", end
    return header


def header_files(library, include=INCLUDE):
    """The installed headers of a library, as paths below include/vigil."""
    root = pathlib.Path(include) / "vigil"
    found = {path.relative_to(root).as_posix() for path in root.glob(library.pattern)} - set(OVERVIEWS)
    return sorted(found | {library.overview})


def read_headers(library, include=INCLUDE):
    return [parse_header(name, (pathlib.Path(include) / "vigil" / name).read_text())
            for name in header_files(library, include)]


def read_all_headers(library, include=INCLUDE):
    """The headers of everything that a library offers."""
    contained = [header for other in LIBRARIES if other.name in library.contains for header in read_headers(other, include)]
    return contained + read_headers(library, include)
