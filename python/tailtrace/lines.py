"""A history as source lines."""

import os
from typing import Dict, Iterable, Iterator, List, NamedTuple, Optional, Union

from ._core import Gap, Instruction

Item = Union[Instruction, Gap]


class Line(NamedTuple):
    """A stretch of instructions of one source line: items number `first` to `last`. `text` is the
    line as it is in the file, or None where that cannot be read.
    """

    file: str
    line: int
    function: Optional[str]
    first: int
    last: int
    text: Optional[str]


class Texts:
    """Lines of files that were read once."""

    def __init__(self) -> None:
        self._files: Dict[str, List[str]] = {}

    def at(self, file: str, line: int) -> Optional[str]:
        if file not in self._files:
            self._files[file] = self._read(file)
        lines = self._files[file]
        return lines[line - 1] if 1 <= line <= len(lines) else None

    @staticmethod
    def _read(file: str) -> List[str]:
        # A pipe would be waited for.
        if not os.path.isfile(file):
            return []
        try:
            # Compilers count line feeds only.
            with open(file, errors="replace", newline="\n") as source:
                return [line.rstrip("\r\n") for line in source]
        except OSError:
            return []


def lines_of(items: "Iterable[Item]") -> Iterator[Line]:
    """Of items in a row, in their order, which may be backwards; what has no source line is left
    out, and parts two lines.
    """
    texts = Texts()
    open_line: Optional[Line] = None
    for item in items:
        file = line = None
        if not isinstance(item, Gap):
            file, line = item.file, item.line
        if open_line is not None and (file, line) == (open_line.file, open_line.line):
            open_line = open_line._replace(first=min(open_line.first, item.number),
                                           last=max(open_line.last, item.number))
            continue
        if open_line is not None:
            yield open_line
            open_line = None
        if not isinstance(item, Gap) and file is not None and line is not None:
            open_line = Line(file, line, item.function, item.number, item.number,
                             texts.at(file, line))
    if open_line is not None:
        yield open_line
