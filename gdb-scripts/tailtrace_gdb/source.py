"""Which history the commands are about."""

import gdb

from . import native, saved
from .errors import user_error
from .server import ServerHistory

# What to do where nothing is recorded, by what GDB is connected to.
WAYS = {None: "tailtrace start", "native": "tailtrace start", "core": "tailtrace load FOLDER"}


def current():
    """Of the selected thread: out of the bundle that was loaded, else what is recorded here, else
    what the server records."""
    if saved.trace is not None:
        return saved.of_selected_thread()
    if native.current() is not None:
        return native.of_selected_thread()
    refuse_where_none_can_be()
    return ServerHistory()


def refuse_where_none_can_be():
    """There is a server to be asked, or what to do in place of that is said."""
    connection = gdb.selected_inferior().connection
    kind = connection.type if connection is not None else None
    if kind in WAYS:
        raise user_error("cannot show a history", "nothing is recorded", WAYS[kind])
