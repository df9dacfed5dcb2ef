"""Which history the commands are about."""

from . import saved
from .server import ServerHistory


def current():
    """Of the selected thread: out of the bundle that was loaded, else what the server records."""
    if saved.trace is not None:
        return saved.of_selected_thread()
    return ServerHistory()
