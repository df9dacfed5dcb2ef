"""Memory of the library as arrays: NumPy's where it is installed, memoryviews where it is not."""

from typing import Any, Dict, Optional, Tuple

from . import _core
from .words import counted

# One branch record for `struct.iter_unpack` over the memoryview that takes the place of an array:
# from, to, time, insns, kind, flags, extra.
RECORD_STRUCT = _core.record_struct


def as_array(buffer: Any) -> Any:
    """The buffer in place, read-only."""
    try:
        import numpy  # not before it is needed: that takes longer than all else here
    except ImportError:
        return memoryview(buffer)
    return numpy.asarray(buffer)


class Columns(Dict[str, Any]):
    """One array per field, by name; all equally long.

    It is a table for whoever knows Arrow's PyCapsule interface, who copies nothing:
    `polars.from_arrow(h.columns())`, `duckdb.from_arrow(h.columns())`,
    `pyarrow.RecordBatchReader.from_stream(h.columns())`, `pandas.DataFrame.from_arrow` of pandas 3.
    To `pandas.DataFrame` and `polars.DataFrame` it is a dictionary of arrays.

    >>> columns = example_history().columns()
    >>> columns
    <4 rows of from, to, time, insns, kind, flags, extra>
    >>> columns.__arrow_c_stream__()  # doctest: +ELLIPSIS
    <capsule object "arrow_array_stream" at ...>
    """

    def __init__(self, buffers: "Dict[str, _core.Buffer]") -> None:
        super().__init__((name, as_array(buffer)) for name, buffer in buffers.items())
        self._buffers = buffers

    def __reduce__(self) -> Tuple[Any, ...]:
        """What is pickled or copied is a dictionary of the arrays: other processes take that."""
        return dict, (dict(self),)

    def __repr__(self) -> str:
        rows = len(next(iter(self._buffers.values())))
        return f"<{counted(rows, 'row')} of {', '.join(self)}>"

    def __arrow_c_schema__(self) -> object:
        return _core.arrow_schema(self._buffers)

    def __arrow_c_array__(self, requested_schema: Optional[object] = None) -> Tuple[object, object]:
        return _core.arrow_array(self._buffers)

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        return _core.arrow_stream(self._buffers)
