"""Memory of the library as arrays: NumPy's where it is installed, memoryviews where it is not."""

from typing import Any, Dict

from . import _core

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]

# One branch record for `struct.iter_unpack` over the memoryview that takes the place of an array:
# from, to, time, insns, kind, flags, extra.
RECORD_STRUCT = "<QQQIBBH"


def as_array(buffer: Any) -> Any:
    """The buffer in place, read-only."""
    if numpy is None:
        return memoryview(buffer)
    return numpy.asarray(buffer)


def as_arrays(buffers: "Dict[str, _core.Buffer]") -> Dict[str, Any]:
    return {name: as_array(buffer) for name, buffer in buffers.items()}
