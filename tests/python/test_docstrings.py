"""Every example in a docstring runs and says what it says."""

import doctest
import importlib
import pkgutil

import pytest
import rings
import tailtrace

MODULES = ["tailtrace"] + [f"tailtrace.{module.name}" for module in
                           pkgutil.iter_modules(tailtrace.__path__) if module.name != "_core"]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, example_path, example, recorded, open_loop):
    names = {"tailtrace": tailtrace, "EXAMPLE_CODE": rings.CODE,
             "example_ring": lambda: example_path, "example_history": lambda: example,
             "example_loop": lambda rounds: open_loop(rounds, 1 << 12),
             "example_program": lambda: recorded.threads[0],
             "example_calls": lambda: recorded.threads[0].calls()}
    result = doctest.testmod(importlib.import_module(name), extraglobs=names)
    assert result.failed == 0


def test_there_are_examples():
    examples = sum(len(test.examples) for name in MODULES for test in
                   doctest.DocTestFinder().find(importlib.import_module(name)))
    assert examples > 10


def test_everything_public_says_what_it_is():
    for name in tailtrace.__all__:
        thing = getattr(tailtrace, name)
        if not isinstance(thing, str):
            assert thing.__doc__, name
            for member, value in vars(thing).items() if isinstance(thing, type) else []:
                if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                    assert value.__doc__, f"{name}.{member}"
