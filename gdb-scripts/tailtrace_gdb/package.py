"""Histories that the Python package `tailtrace` has."""

from .errors import user_error
from .history import History, parsed


def package():
    """The Python package; it is needed for what is not asked of a server."""
    try:
        import tailtrace
        return tailtrace
    except ImportError as error:
        raise user_error("cannot use the Python package `tailtrace`", str(error),
                         "install it for the Python that GDB has in it: pip install ./python",
                         "everything behind `tailtrace serve`") from None


def attempt(what):
    """The value of `what()`, its failures in GDB's way."""
    module = package()
    try:
        return what(module)
    except module.Error as error:
        raise user_error(error.what, error.why, error.fix, error.now) from None


class PackageHistory(History):
    """One of them. `state` tells those of one thread apart that were taken one after another."""

    def __init__(self, source, where, state=None):
        super().__init__(f"{where} {source.pid}.{source.tid}")
        self.source = source
        self.state = state
        self._calls = None
        self._newest_calls = None

    def head(self):
        h = self.source
        facts = attempt(lambda _: {"engine": h.engine, "long": h._core.is_long,
                                   "state": self.state})
        if not facts["long"]:
            facts.update(self.counted())
        if h.stop is not None:
            facts["stop"] = f"{h.stop:#x}"
        return facts

    def counted(self):
        h = self.source
        return attempt(lambda _: {"size": len(h), "gaps": h.gaps, "complete": h.complete})

    def calls(self):
        if self._calls is None:
            self._calls = attempt(lambda _: self.source.calls()._core)
        return self._calls

    def calls_head(self):
        return {"calls": self.calls().size}

    def calls_from(self, position):
        """Such calls as have one at the position, if there is one."""
        if self._calls is not None or not self.is_long:
            return self.calls()
        if self._newest_calls is None or self._newest_calls.size <= -position:
            self._newest_calls = attempt(
                lambda module: module._core.make_newest_calls(self.source._core, -position))
        return self._newest_calls

    def holds(self, position):
        return attempt(lambda _: self.source._core.holds(position))

    def loops(self, first, last):
        first = self.first_held(first)
        if first > last:
            return []
        found = attempt(lambda _: self.source._core.loops(first, last, 3))
        return [{"first": start, "last": end, "rounds": rounds, "head": f"{head:#x}",
                 "back": f"{back:#x}", **({} if left is None else {"exit": f"{left:#x}"})}
                for start, end, rounds, head, back, left in found]

    def counts(self, begin, end):
        found = attempt(lambda _: self.source[:].counts(begin, end))
        return [{"address": f"{count.address:#x}", "times": count.times,
                 **({} if count.taken is None else {"taken": count.taken})} for count in found]

    def some(self, what, first, count):
        last = min(first + count - 1, -1)
        if what == "items":
            first = self.first_held(first)
            lines = self.source._core.json_lines
        else:
            calls = self.calls_from(first)
            size = calls.size
            lines = lambda a, b: calls.json_lines(a + size + 1, b + size + 1)  # noqa: E731
            first = max(first, -size)
        if first > last:
            return []
        return parsed(attempt(lambda _: lines(first, last)))

    def raw_records(self, first, count):
        held = memoryview(attempt(lambda _: self.source.records))
        begin = first - 1 if first > 0 else len(held) + first
        end, at = max(begin + count, 0), max(begin, 0)
        return first + at - begin, held[at:end].tobytes()

    def call_holding(self, position):
        calls = self.calls()
        number = attempt(lambda _: calls.holding(position)) if position < 0 else None
        return None if number is None else self.call(number - calls.size - 1)

    def older_callers(self, position):
        found = attempt(lambda _: self.calls().older_callers(position))
        return [(function, address + 1, None if line is None else {"file": file, "line": line})
                for function, _, file, line, address in found]

    def some_of_tree(self, limit, parts, skipped):
        calls = self.calls_from(-parts)
        lines, is_cut = attempt(lambda _: calls.json_lines_of_tree(limit, skipped))
        return parsed(lines), calls.size if is_cut else None

    def exported(self, name, first, last):
        if name == "lcov":
            return attempt(lambda _: self.source._core.lcov(first, last))
        return attempt(lambda _: self.calls().folded(first, last))

    def whole_calls(self, limit, function):
        lines, count = attempt(lambda _: self.calls().json_lines_of(function, limit))
        return parsed(lines), count

    def hits(self, limit, location):
        found = attempt(lambda _: self.source.hits(location, limit=limit))
        return [self.item(item.position) for item in reversed(found)]

    def reasons(self, position, limit):
        groups, end, _ = attempt(lambda module: module._core.reasons(self.source._core, position,
                                                                     limit))
        return [(times, [self.decision(*one) for one in decisions])
                for times, decisions in groups], end

    def decision(self, position, address, to, taken, event):
        return {**self.item(position), **({} if event is None else {"event": event})}
