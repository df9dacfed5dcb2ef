"""GDB commands over recorded histories.

A history comes from `tailtrace serve`, which the inferior runs under, or out of a saved bundle,
read by the Python package `tailtrace`; the commands are the same. Numbers are those of GDB's own
`record instruction-history` and `record function-call-history`.
"""

from . import control, lists, prefix, search, settings, walk, window


def install():
    """Makes the commands and settings known to GDB."""
    prefix.install()
    settings.install()
    window.install()
    for module in (control, lists, walk, search):
        for command in module.COMMANDS:
            command()
