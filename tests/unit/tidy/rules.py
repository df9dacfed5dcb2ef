"""The rules that the source tree keeps, each a function from text to the list of its breaches.

A breach is (line number, what is wrong); the callers add the path. Nothing here reads a file.
"""

import re
import sys

MAX_COLUMNS = 100
MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 70

TOP_LEVEL = {
    "CMakeLists.txt", "plugin", "decoder", "python", "tests", "gdb-scripts", "README.md", ".ci",
    ".clang-format", ".clang-tidy", ".gitignore", ".gitattributes", ".editorconfig",
    "CMakePresets.json", "LICENSE", "CHANGELOG.md",
}

# The layers from the bottom up. Folders of one layer do not see each other, but for PEERS.
LAYERS = [
    ["decoder/base"],
    ["decoder/code", "decoder/record", "decoder/perf"],
    ["decoder/pt", "decoder/bts"],
    ["decoder/history"],
    ["decoder/bundle", "decoder/symbols", "decoder/export"],
    ["decoder/perf_data"],
    ["plugin/provider", "plugin/engines"],
    ["plugin/server", "plugin/recorder", "plugin/lldb", "plugin/cli", "plugin/include", "python"],
]
RANK = {folder: rank for rank, folders in enumerate(LAYERS) for folder in folders}
# The provider picks an engine; the command line starts the server and the recorder, which holds
# programs under qemu as the server does; classes of instructions have their kinds of records;
# bundles name modules, which have segments and build ids.
PEERS = {("plugin/provider", "plugin/engines"), ("plugin/cli", "plugin/server"),
         ("plugin/cli", "plugin/recorder"), ("plugin/recorder", "plugin/server"),
         ("decoder/code", "decoder/record"), ("decoder/bundle", "decoder/symbols")}

# Folders inside of a layer, from the bottom up; "" is what lies beside them.
ROOMS = {
    "decoder/pt": ["packets", "", "synthesis", "fast", "flow", "segments"],
    "decoder/history": ["", "calls", "queries"],
    "plugin/server": ["rsp", "below", "qemu", "recording", "gdb", "lldb", "monitor", ""],
    "plugin/cli": ["", "browser", "commands"],
}

# Whoever is below the faces says nothing and ends nothing: it returns errors.
SILENT = ("decoder/", "plugin/engines/", "plugin/server/", "plugin/provider/",
          "plugin/recorder/")
LOUD = [
    (re.compile(r"(?<![\w.>])(?:printf|fprintf|vprintf|vfprintf|puts|fputs|putchar|perror)\s*\("),
     "prints"),
    (re.compile(r"\bstd::(?:cout|cerr|clog)\b|\bfmt::print\b|#include <iostream>"), "prints"),
    (re.compile(r"(?<![\w.>])(?:exit|quick_exit|abort)\s*\("), "ends the process"),
    (re.compile(r"\bstd::terminate\b"), "ends the process"),
    (re.compile(r"\bthrow\b"), "throws"),
]
# The decoder works on bytes: nothing of a process, a kernel interface or a debugger.
LIVE = [
    (re.compile(r'#include [<"](?:sys/ptrace\.h|lldb/|gdb/|asm/ptrace)'), "sees a live process"),
    (re.compile(r"perf_event_open"), "makes perf's system call"),
    (re.compile(r"(?<![\w.>])ptrace\s*\("), "makes ptrace's system call"),
]

# What writes without a bound, starts a shell, or keeps its answer where other threads write theirs.
PRODUCT = ("decoder/", "plugin/", "python/")
UNSAFE = [
    (re.compile(r"(?<![\w.>])(?:strcpy|stpcpy|strcat|sprintf|vsprintf|gets|alloca)\s*\("),
     "has no bound"),
    (re.compile(r"(?<![\w.>])(?:system|popen)\s*\("), "starts a shell"),
    (re.compile(r"(?<![\w.>])(?:strtok|localtime|gmtime|asctime|ctime|tmpnam|mktemp)"
                r"\s*\("), "is not for threads"),
]

# What leaves the tree by itself says under which licence: headers that are installed, modules that
# debuggers and Python load, and pages about the whole.
LICENSED = {
    "LICENSE": "MIT License", "README.md": "The licence is MIT",
    "plugin/include/tailtrace/tailtrace.h": "// SPDX-License-Identifier: MIT",
    "plugin/include/tailtrace/tailtrace.hpp": "// SPDX-License-Identifier: MIT",
    "gdb-scripts/tailtrace.py": "# SPDX-License-Identifier: MIT",
    "python/tailtrace/__init__.py": "# SPDX-License-Identifier: MIT",
    "python/build_wheel.py": "License: MIT\\n",
    "tests/guest/module/fakepmu.c": 'MODULE_LICENSE("Dual MIT/GPL")',
}
# Somebody's own folder.
HOMES = re.compile(rb"(?<![\w.}])/(?:home/|root/|Users/)[\w.]")

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
IMPORT = re.compile(r"^\s*(?:import|from)\s+([\w.]+)")
# Split, or this very line would be a breach.
MARKER = re.compile(r"\b(?:TO" "DO|FIX" "ME|X" "XX)\b")


def strip(source):
    """C++ without comments and the insides of literals; line numbers stay."""
    pattern = re.compile(
        r'R"(?P<tag>[^()\s]{0,16})\(.*?\)(?P=tag)"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"'
        r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",
        re.S)

    def blank(match):
        text = match.group(0)
        lines = "\n" * text.count("\n")
        if text.startswith("/"):
            return lines
        return text if is_include(source, match.start()) else '""' + lines

    return pattern.sub(blank, source)


def is_include(source, at):
    line = source[source.rfind("\n", 0, at) + 1:at]
    return re.match(r"\s*#\s*include\s*$", line) is not None


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def shape(source):
    """Line length, file length, white space, unfinished business."""
    found = []
    lines = source.split("\n")
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_COLUMNS:
            found.append((number, f"{len(line)} columns, {MAX_COLUMNS} at most"))
        if line.rstrip() != line:
            found.append((number, "white space at the end"))
        if "\t" in line:
            found.append((number, "a tab"))
        if MARKER.search(line):
            found.append((number, "unfinished business"))
    if len(lines) - 1 > MAX_FILE_LINES:
        found.append((len(lines), f"{len(lines) - 1} lines, {MAX_FILE_LINES} at most"))
    if source and not source.endswith("\n"):
        found.append((len(lines), "no line feed at the end"))
    return found


def header(source):
    """A header opens with a plain paragraph on what the thing is, and is included once."""
    found = []
    opening = re.match(r"(?:// .*\n)+", source)
    if opening is None or len(opening.group(0)) < 40:
        found.append((1, "does not open with a paragraph that says what it is"))
    if not re.search(r"^#pragma once$", source, re.M):
        found.append((1, "has no #pragma once"))
    return found


def folder_of(path):
    """The layered folder that a path lies in; None when it lies in none."""
    parts = path.split("/")
    if parts[0] == "python":
        return "python"
    return "/".join(parts[:2]) if "/".join(parts[:2]) in RANK else None


def may_include(user, used):
    if user == used or (user, used) in PEERS:
        return True
    return RANK[used] < RANK[user]


def room_of(layer, path):
    """Its place in ROOMS, and its name."""
    rest = path[len(layer) + 1:]
    name = rest.split("/")[0] if "/" in rest else ""
    return ROOMS[layer].index(name), name


def sees_room_above(path, target):
    layer = folder_of(path)
    if layer not in ROOMS or folder_of(target) != layer:
        return False
    return room_of(layer, path) < room_of(layer, target)


def includes(path, source):
    """Arrows point down the list of layers, and paths start at the root."""
    found = []
    user = folder_of(path)
    for number, line in enumerate(strip(source).split("\n"), 1):
        match = INCLUDE.match(line)
        if match is None:
            continue
        target = match.group(1)
        used = folder_of(target)
        if path.startswith(("decoder/", "plugin/", "python/")) and target.startswith("tests/"):
            found.append((number, f"{target} is a test's"))
        elif used is None and not target.startswith("tests/"):
            found.append((number, f"{target} is not a path from the root into a layer"))
        elif user is not None and used is not None and not may_include(user, used):
            found.append((number, f"{user} must not see {used}"))
        elif sees_room_above(path, target):
            found.append((number, f"{path} must not see {target}, which is above it"))
    return found


def searched(rules, text):
    return [(line_of(text, match.start()), what)
            for pattern, what in rules for match in pattern.finditer(text)]


def silence(path, source):
    """The library neither prints nor exits nor throws."""
    return searched(LOUD, strip(source)) if path.startswith(SILENT) else []


def safety(path, source):
    """What there is a safer call for."""
    return searched(UNSAFE, strip(source)) if path.startswith(PRODUCT) else []


def deadness(path, source):
    """The decoder touches no live process."""
    return searched(LIVE, strip(source)) if path.startswith("decoder/") else []


DECLARED = re.compile(
    r"(?:class|struct|union|enum|using|typedef|template|inline|constexpr|\w[\w:<>*& ]*\()")
DECLARED_BEFORE = re.compile(r"(?:class|struct) \w+;|}")
ENCLOSING = re.compile(r'(?:namespace\b|extern "C")[^;]*$')


def documented(path, source):
    """Each paragraph of declarations in an installed header begins with what they are."""
    if not path.startswith("plugin/include/tailtrace/"):
        return []
    found, depth, is_said = [], 0, False
    for number, line in enumerate(source.split("\n"), 1):
        code = line.split("//")[0]
        if depth == 0 and DECLARED.match(line) and not DECLARED_BEFORE.match(line):
            if not is_said:
                found.append((number, "is declared without a word on it"))
        is_said = bool(line) and (is_said or depth > 0 or line.startswith("//"))
        if not ENCLOSING.match(line) and not (depth == 0 and line.startswith("}")):
            depth += code.count("{") - code.count("}")
    return found


def homes(content, own):
    """A path of some machine: somebody's home, or where this very tree lies; `own` are such paths.
    Of any file, as bytes."""
    found = [(content.count(b"\n", 0, match.start()) + 1, "names somebody's own folder")
             for match in HOMES.finditer(content)]
    return found + [(content.count(b"\n", 0, content.find(path)) + 1, "names the folder it lies in")
                    for path in own if path in content]


def licences(read):
    """What has no licence line. `read` has the text of a path."""
    return [f"{path} does not say: {line}" for path, line in LICENSED.items()
            if line not in read(path)]


OTHER_SCOPE = re.compile(r"\b(?:namespace|class|struct|union|enum)\b|\bextern\b")
CONTROL = re.compile(r"^\s*(?:if|for|while|switch|else|do|try|catch|return|case)\b")


def opens_function(head):
    """Whether the text before a brace, outside any function, is a function's head."""
    if ")" not in head or CONTROL.match(head):
        return False
    without_template = re.sub(r"\btemplate\s*<[^{}]*?>\s*(?=[\w\[])", "", head)
    before_parameters = without_template.split("(")[0]
    return OTHER_SCOPE.search(before_parameters) is None and "=" not in before_parameters


def without_directives(text):
    """Preprocessor lines blanked one by one, so that line numbers stay."""
    lines, continued = [], False
    for line in text.split("\n"):
        directive = continued or line.lstrip().startswith("#")
        continued = directive and line.endswith("\\")
        lines.append("" if directive else line)
    return "\n".join(lines)


def without_initialisers(text):
    """Braces that follow a name at once, as in `a{1}`, hold values; line numbers stay."""
    value = re.compile(r"(?<=[\w>])\{[^{};]*\}")
    while True:
        shorter = value.sub(lambda match: "\n" * match.group(0).count("\n"), text)
        if shorter == text:
            return text
        text = shorter


def functions(source):
    """No function is longer than a screen; a body of namespace or class scope is a function."""
    text = without_initialisers(without_directives(strip(source)))
    found, depth, inside, head_start = [], 0, None, 0
    for match in re.finditer(r"[{};]", text):
        sign, at = match.group(0), match.start()
        if sign == "{":
            depth += 1
            if inside is None and opens_function(text[head_start:at]):
                head = text[head_start:at]
                inside = (depth, line_of(text, head_start + len(head) - len(head.lstrip())))
        elif sign == "}":
            if inside is not None and inside[0] == depth:
                length = line_of(text, at) - inside[1] + 1
                if length > MAX_FUNCTION_LINES:
                    what = f"a function of {length} lines, {MAX_FUNCTION_LINES} at most"
                    found.append((inside[1], what))
                inside = None
            depth -= 1
        if inside is None:
            head_start = at + 1
    if depth != 0:
        found.append((1, "braces do not match"))
    return found


def scripts(source):
    """GDB's scripts see each other, never in a circle, GDB, the standard library and our Python
    module."""
    allowed = set(sys.stdlib_module_names) | {"gdb", "tailtrace", ""}  # "": their own
    found = []
    for number, line in enumerate(source.split("\n"), 1):
        match = IMPORT.match(line)
        if match and match.group(1).split(".")[0] not in allowed:
            found.append((number, f"imports {match.group(1)}"))
        if match and match.group(1).startswith(".") and line[0].isspace():
            found.append((number, "imports one of the scripts late, as in a circle"))
    return found


def top_level(names):
    """Nothing stands at the top but what belongs there."""
    return [(0, f"{name} does not belong at the top level") for name in sorted(names)
            if name not in TOP_LEVEL]


def check_file(path, source):
    """Every rule that applies to a file of this path."""
    found = []
    if path.endswith((".md", ".txt", ".json")):
        return found
    found += shape(source)
    if path.endswith((".h", ".hpp")):
        found += header(source)
    if path.endswith((".h", ".hpp", ".cpp", ".c")):
        found += includes(path, source) + silence(path, source) + deadness(path, source)
        found += safety(path, source)
        found += functions(source) + documented(path, source)
    if path.startswith("gdb-scripts/") and path.endswith(".py"):
        found += scripts(source)
    return found
