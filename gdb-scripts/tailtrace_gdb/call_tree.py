"""Calls as wholes: the segments that GDB numbers, put together to what was called once."""

from .styles import styled


class Node:
    """A call from its first to its last segment, as far as they were recorded, or several equal
    ones in a row, of which `call` is the oldest."""

    def __init__(self, call):
        self.call = call
        self.last = call["last"]
        self.times = 1

    def follows(self, call, parts):
        """Whether it was called next after `call`, by the same caller."""
        mine, other = self.call, call
        if "earlier" in mine or "earlier" in other or mine.get("function") != other.get("function"):
            return False
        return bool(mine.get("caller")) and parts.get(mine["caller"]) == other.get("caller")


def newest(history, limit, most_parts=None):
    """The newest calls, from the newest on; and the position where that ended although there may be
    more: so many parts are looked at."""
    found, parts = [], {}
    told = set()  # segments of calls that were met before, by a newer segment
    for seen, call in enumerate(history.backwards("calls")):
        if most_parts is not None and seen >= most_parts:
            return found, call["position"] + 1
        if "gap" in call:
            continue
        position, earlier = call["position"], call.get("earlier")
        parts[position] = earlier
        told.add(earlier)
        if position in told:
            continue
        if found and found[-1].follows(call, parts):
            found[-1].times += 1
            found[-1].call = call
        elif len(found) == limit:
            break
        else:
            found.append(Node(call))
    return found, None


# A call that called others this often is not followed to its beginning.
MAX_PARTS = 1000


def beginning(history, call):
    """The first segment of a call that was recorded, as far back as is followed."""
    for _ in range(MAX_PARTS):
        if not call.get("earlier"):
            break
        call = history.call(call["earlier"])
    return call


def lines(history, nodes):
    outermost = min(node.call.get("level", 0) for node in nodes)
    begun_nodes = [(beginning(history, node.call), node) for node in nodes]
    for begun, node in sorted(begun_nodes, key=lambda pair: pair[0]["first"]):
        indent = "  " * (node.call.get("level", 0) - outermost)
        yield line(history, {**begun, "last": node.last, "times": node.times}, indent) + "\n"


def line(history, call, indent=""):
    """A call as a whole, from its first part on."""
    number = history.call_number(call["position"])
    first, last = history.number(call["first"]), history.number(call["last"])
    before = "before " if call.get("earlier") or call.get("begun_before") else ""
    text = f"{number}\t{indent}{styled('function', call.get('function', '??'))}"
    text += f"\tinst {before}{first},{last}"
    if call.get("times", 1) > 1:
        text += f"\t{call['times']} times"
    return text


def line_with_caller(history, call):
    text = line(history, call)
    caller = call.get("caller")
    if caller is not None:
        text += f"\tfrom {styled('function', caller.get('function', '??'))}"
        if "line" in caller:
            text += f" at {styled('filename', caller['file'])}:{caller['line']}"
    return text + "\n"
