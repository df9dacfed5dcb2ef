"""The types that the package tells of hold together, by mypy's strictest rules."""

import ast
import os
import subprocess
import sys

import tailtrace
from tailtrace import _core

PACKAGE = os.path.dirname(tailtrace.__file__)

RIGHT = """
import tailtrace
h: tailtrace.History = tailtrace.open("x").threads[0]
view: tailtrace.View = h[-10:]
for item in view:
    if isinstance(item, tailtrace.Instruction):
        address: int = item.address
"""

WRONG = """
import tailtrace
h = tailtrace.open("x").threads[0]
text: str = h[-1].number
h.at("1")
h.no_such_thing
h.find(kinds="call")
"""


def told_of(scope):
    """The names that a stub has of a module or a class."""
    for node in scope.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield node.name
        elif isinstance(node, ast.AnnAssign):
            yield node.target.id


def public(names):
    return {name for name in names if not name.startswith("_")}


def test_the_compiled_half_is_told_of_as_it_is():
    with open(os.path.join(PACKAGE, "_core.pyi")) as file:
        stub = ast.parse(file.read())
    assert public(told_of(stub)) == public(dir(_core))
    for node in stub.body:
        if isinstance(node, ast.ClassDef):
            assert public(told_of(node)) == public(vars(getattr(_core, node.name))), node.name


def mypy(tmp_path, *what):
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={tmp_path}/cache", *what],
        text=True, stdout=subprocess.PIPE, cwd=os.path.dirname(PACKAGE))


def test_the_package(tmp_path):
    result = mypy(tmp_path, PACKAGE)
    assert result.returncode == 0, result.stdout


def test_programs_that_use_it(tmp_path):
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text(WRONG)
    result = mypy(tmp_path, tmp_path / "right.py")
    assert result.returncode == 0, result.stdout
    assert mypy(tmp_path, tmp_path / "wrong.py").stdout.count(": error:") == 4
