"""GDB commands over recorded histories.

A history comes from `tailtrace serve`, which the inferior runs under; from the processor, for
programs that GDB runs itself; or out of a saved bundle. For the last two the Python package
`tailtrace` is needed; the commands are the same. Numbers are those of GDB's own
`record instruction-history` and `record function-call-history`. For scripts, `records` has the
branch records themselves.
"""

from . import control, lists, native, prefix, search, settings, walk, window
from .records import RECORD_DTYPE, RECORD_STRUCT, records

__all__ = ["RECORD_DTYPE", "RECORD_STRUCT", "install", "records", "uninstall"]


def install():
    """Makes the commands and settings known to GDB."""
    prefix.install()
    settings.install()
    window.install()
    for module in (control, lists, walk, search):
        for command in module.COMMANDS:
            command()


def uninstall():
    """Before others take the place of these: what is being recorded ends."""
    native.end_all()
