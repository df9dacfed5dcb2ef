"""Holds the source tree against its rules (rules.py), and the rules against small breaches."""

import os
import pathlib
import shutil
import subprocess
import unittest

import limits
import rules

ROOT = pathlib.Path(__file__).resolve().parents[3]
SOURCES = {".h", ".hpp", ".cpp", ".c", ".py"}
LEFT_BEHIND = {".git", "build", "__pycache__", ".cache", "compile_commands.json"}
# A kernel module keeps the kernel's own style.
KERNEL = ROOT / "tests" / "guest" / "module"


def sources():
    for top in ("decoder", "plugin", "python", "tests", "gdb-scripts"):
        for path in sorted((ROOT / top).rglob("*")):
            if KERNEL in path.parents:
                continue
            if path.suffix in SOURCES and path.is_file() and not LEFT_BEHIND & set(path.parts):
                yield path


def all_files():
    for name in sorted({path.name for path in ROOT.iterdir()} - LEFT_BEHIND):
        for path in [ROOT / name, *(ROOT / name).rglob("*")]:
            if path.is_file() and not path.is_symlink() and not LEFT_BEHIND & set(path.parts):
                yield path


class TheTree(unittest.TestCase):
    def test_keeps_the_rules(self):
        breaches = []
        for path in sources():
            name = path.relative_to(ROOT).as_posix()
            for line, what in rules.check_file(name, path.read_text(encoding="utf-8")):
                breaches.append(f"{name}:{line}: {what}")
        self.assertEqual([], breaches, "\n" + "\n".join(breaches))

    def test_has_nothing_strange_at_the_top(self):
        names = {path.name for path in ROOT.iterdir()} - LEFT_BEHIND
        self.assertEqual([], rules.top_level(names))

    def test_is_under_the_licence_wherever_a_part_of_it_goes(self):
        self.assertEqual([], rules.licences(
            lambda path: (ROOT / path).read_text(encoding="utf-8")))

    def test_names_no_folder_of_some_machine(self):
        # A folder right below the root, as a container's, is named for other reasons, too.
        own = [os.fsencode(place) for place in (ROOT, ROOT.parent) if len(place.parts) > 2]
        for path in all_files():
            found = rules.homes(path.read_bytes(), own)
            self.assertEqual([], found, path)

    def test_has_sources_to_look_at(self):
        self.assertGreater(len(list(sources())), 20)

    def test_has_the_limits_that_its_page_names(self):
        rows = limits.rows((ROOT / "decoder" / "LIMITS.md").read_text(encoding="utf-8"))
        self.assertGreater(len(rows), 20)
        for said, constant, path in rows:
            with self.subTest(constant, path=path):
                source = (ROOT / path).read_text(encoding="utf-8")
                self.assertEqual(limits.number(said), limits.value_of(constant, source))

    def test_has_the_layers_that_its_design_names(self):
        design = (ROOT / "decoder" / "DESIGN.md").read_text(encoding="utf-8")
        design = design.replace("decoder/pt, bts ", "decoder/pt \n    decoder/bts ")
        for folder in rules.RANK:
            self.assertIn(f"\n    {folder} ", design)

    def test_says_of_each_benchmark_what_it_is_for(self):
        folder = ROOT / "tests" / "bench"
        page = (folder / "README.md").read_text(encoding="utf-8")
        for path in sorted(folder.iterdir()):
            name = path.stem if path.suffix == ".cpp" else path.name
            self.assertTrue(path.suffix == ".md" or f"bench/{name}" in page or
                            f"tests/{name}" in page, path)

    @unittest.skipUnless(shutil.which("clang-format"), "clang-format is not installed")
    def test_is_formatted(self):
        files = [str(path) for path in sources() if path.suffix != ".py"]
        result = subprocess.run(["clang-format", "--dry-run", "--Werror", *files],
                                capture_output=True, text=True, check=False)
        wrong = [line for line in result.stderr.splitlines() if "error:" in line]
        self.assertEqual(0, result.returncode, "\n".join(wrong[:20]))


class TheRules(unittest.TestCase):
    def breaches(self, path, source):
        return [what for _, what in rules.check_file(path, source)]

    def assert_breach(self, part, path, source):
        found = self.breaches(path, source)
        self.assertTrue(any(part in what for what in found), (part, found))

    def assert_clean(self, path, source):
        self.assertEqual([], self.breaches(path, source))

    def test_lines_and_files_have_a_length(self):
        self.assert_clean("decoder/base/a.cpp", "// " + "x" * 97 + "\n")
        self.assert_breach("101 columns", "decoder/base/a.cpp", "// " + "x" * 98 + "\n")
        self.assert_breach("501 lines", "decoder/base/a.cpp", "int a;\n" * 501)
        self.assert_breach("no line feed", "decoder/base/a.cpp", "int a;")

    def test_a_header_opens_with_a_paragraph(self):
        opening = "// A thing that does what things of this kind do.\n"
        self.assert_clean("decoder/base/a.h", opening + "#pragma once\n")
        self.assert_breach("paragraph", "decoder/base/a.h", "#pragma once\n")
        self.assert_breach("#pragma once", "decoder/base/a.h", opening)

    def test_arrows_point_down(self):
        down = '#include "decoder/base/result.h"\n'
        self.assert_clean("decoder/history/a.cpp", down)
        self.assert_clean("plugin/cli/a.cpp", '#include "plugin/server/proxy.h"\n')
        up = '#include "decoder/symbols/symbols.h"\n'
        self.assert_breach("must not see", "decoder/history/a.cpp", up)
        self.assert_breach("must not see", "decoder/pt/a.cpp", '#include "decoder/bts/b.h"\n')
        self.assert_breach("must not see", "plugin/server/a.cpp", '#include "plugin/cli/b.h"\n')
        self.assert_breach("a test's", "plugin/cli/a.cpp", '#include "tests/support/b.h"\n')
        self.assert_breach("not a path", "plugin/cli/a.cpp", '#include "b.h"\n')
        self.assert_clean("decoder/base/a.cpp", '// #include "decoder/pt/b.h"\n')

    def test_arrows_inside_of_a_layer_point_down(self):
        down = '#include "decoder/pt/fast/b.h"\n'
        self.assert_clean("decoder/pt/flow/a.cpp", down)
        self.assert_clean("decoder/pt/fast/a.cpp", down)
        self.assert_breach("above it", "decoder/pt/packets/a.cpp", down)
        self.assert_breach("above it", "decoder/pt/a.cpp", down)
        self.assert_clean("decoder/pt/fast/a.cpp", '#include "decoder/pt/b.h"\n')
        self.assert_breach("above it", "plugin/cli/a.cpp", '#include "plugin/cli/browser/b.h"\n')

    def test_the_library_is_silent(self):
        self.assert_breach("prints", "decoder/base/a.cpp", 'void f() { printf("x"); }\n')
        self.assert_breach("prints", "plugin/server/a.cpp", "void f() { std::cerr << 1; }\n")
        self.assert_breach("ends", "plugin/engines/a.cpp", "void f() { std::exit(1); }\n")
        self.assert_breach("throws", "decoder/base/a.cpp", "void f() { throw 1; }\n")
        self.assert_clean("plugin/cli/a.cpp", 'void f() { printf("x"); }\n')
        quiet = 'void f() { snprintf(b, 1, "throw"); /* throw */ ::_exit(1); }\n'
        self.assert_clean("decoder/base/a.cpp", quiet)

    def test_calls_are_safe(self):
        for what, call in (("no bound", "std::strcpy(a, b)"), ("no bound", "sprintf(a, b)"),
                           ("shell", "::popen(a, b)"), ("threads", "localtime(&a)")):
            self.assert_breach(what, "plugin/cli/a.cpp", f"void f() {{ {call}; }}\n")
        self.assert_clean("plugin/cli/a.cpp", "void f() { snprintf(a, 1, b); a.system(); }\n")

    def test_the_decoder_touches_no_process(self):
        self.assert_breach("live", "decoder/base/a.cpp", "#include <sys/ptrace.h>\n")
        self.assert_breach("perf's", "decoder/perf/a.cpp", "int n = SYS_perf_event_open;\n")
        self.assert_clean("plugin/engines/a.cpp", "#include <sys/ptrace.h>\n")

    def test_functions_fit_on_a_screen(self):
        def function(lines, head="int f() {"):
            return head + "\n" + "  g();\n" * (lines - 2) + "}\n"

        def member(lines):
            return "class A {\n" + function(lines, "void f() const {") + "};\n"

        for make in (function, member):
            self.assert_clean("decoder/base/a.cpp", make(70))
            self.assert_breach("a function of 71", "decoder/base/a.cpp", make(71))
        other = [function(90, head) for head in ("namespace {", "struct A : B<int(char)> {",
                                                 "enum class A : int {")]
        for source in other:
            self.assert_clean("decoder/base/a.cpp", source.replace("g();", "int a;"))
        nested = "int f() {\n" + "  if (a) {\n  }\n" * 40 + "}\n"
        self.assert_breach("a function of 82", "decoder/base/a.cpp", nested)
        constructor = function(80, "A::A(int a)\n    : a_{a}, b_(a) {")
        self.assert_breach("a function of 81", "decoder/base/a.cpp", constructor)
        template = function(80, "template <class T>\nT f(T a) {")
        self.assert_breach("a function of 81", "decoder/base/a.cpp", template)

    def test_what_is_installed_is_documented(self):
        path = "plugin/include/tailtrace/a.h"
        opening = "// A thing that does what things of this kind do.\n#pragma once\n"
        for said in ("TT_API int tt_a(void);\n", "struct A {\n  int a;\n};\n", "enum {\n  A\n};\n",
                     "typedef struct tt_a {\n  int a;\n} tt_a;\n", "using A = int;\n",
                     "template <class T>\nT f(T a) {\n  return a;\n}\n"):
            self.assert_clean(path, f"{opening}\nnamespace n {{\n\n// It is.\n{said}\n}}\n")
            self.assert_breach("without a word", path, f"{opening}\n{said}")
            other = "// It is.\nclass B {};\n"
            self.assert_breach("without a word", path, f"{opening}{other}\n{said}")
            self.assert_clean("decoder/base/a.h", f"{opening}\n{said}")

    def test_no_machine_is_named(self):
        # Split, or these very lines would be breaches.
        for text in (b"a\ncd /ho" b"me/ada/src", b"'/ro" b"ot/.cache'", b"\0/Us" b"ers/ada"):
            self.assertEqual(1, len(rules.homes(text, [])), text)
        self.assertEqual([(2, "names the folder it lies in")],
                         rules.homes(b"a\n/srv/tree/a.c", [b"/srv/tree"]))
        self.assertEqual([], rules.homes(b"/proc/{}/root/tmp /srv/other /homepage", [b"/srv/tree"]))

    def test_a_licence_is_named(self):
        lines = dict(rules.LICENSED)
        self.assertEqual([], rules.licences(lines.get))
        for path in lines:
            self.assertEqual(1, len(rules.licences(lambda one: "" if one == path else lines[one])))

    def test_literals_do_not_confuse_it(self):
        text = "int f() {\n  g('{', \"}}\\\"{\", 1'000'000, R\"x({ \" )x\");\n}\n"
        self.assert_clean("decoder/base/a.cpp", text)
        self.assert_breach("braces", "decoder/base/a.cpp", "int f() {\n")

    def test_scripts_see_only_the_module(self):
        self.assert_clean("gdb-scripts/a.py", "import gdb\nimport tailtrace\nimport os.path\n")
        self.assert_clean("gdb-scripts/a/b.py", "from . import c\nfrom .c import d\n")
        self.assert_breach("imports numpy", "gdb-scripts/a.py", "import numpy as np\n")
        self.assert_breach("in a circle", "gdb-scripts/a/b.py", "def f():\n    from . import c\n")

    def test_the_top_level_is_closed(self):
        self.assertEqual([], rules.top_level({"decoder", "README.md"}))
        self.assertEqual(1, len(rules.top_level({"decoder", "notes.txt"})))


if __name__ == "__main__":
    unittest.main()
