"""Calls as nested, folded HTML for notebooks."""

import html
from typing import TYPE_CHECKING, List

if TYPE_CHECKING:
    from .calls import Call, Calls

# What a browser shows without trouble, and how deep.
MAX_CALLS = 2000
MAX_DEPTH = 100


def line_of(call: "Call", times: int) -> str:
    name = call.function or ("gap" if call.is_gap else "??")
    often = f" &times;{times}" if times > 1 else ""
    return f"{html.escape(name)}{often} <small>[{call.first}..{call.last}]</small>"


def closed(parts: List[str], depth: int, level: int) -> int:
    while depth > level:
        parts.append("</details>")
        depth -= 1
    return depth


def tree(calls: "Calls") -> str:
    """The newest calls; those that called others can be folded, equal ones in a row are one."""
    shown = calls.newest(MAX_CALLS)
    if not shown:
        return "<p>no calls</p>"
    base = min(call.level for call in shown)
    parts: List[str] = []
    if len(calls) > len(shown):
        parts.append(f"<p>{len(calls) - len(shown)} older calls are not shown</p>")
    depth = at = 0
    while at < len(shown):
        call = shown[at]
        level = min(call.level - base, MAX_DEPTH)
        depth = closed(parts, depth, level)
        has_inner = at + 1 < len(shown) and shown[at + 1].level > call.level
        times, step = equal_calls(shown, at)
        while has_inner and depth < level:
            parts.append("<details open><summary>...</summary>")
            depth += 1
        if has_inner and times == 1 and level < MAX_DEPTH:
            parts.append(f"<details{' open' if level < 3 else ''}>"
                         f"<summary>{line_of(call, 1)}</summary>")
            depth += 1
        else:
            parts.append(f"<div style='margin-left:1em'>{line_of(call, times)}</div>")
        at += step
    closed(parts, depth, 0)
    return "".join(parts)


def equal_calls(shown: "List[Call]", at: int) -> "tuple[int, int]":
    """How often a call that calls nobody is made in a row by the same part of its caller: caller,
    call, caller, call, ...; and how many segments that takes.
    """
    call, times, end = shown[at], 1, at + 1
    while end + 1 < len(shown):
        between, again = shown[end], shown[end + 1]
        if (again.function, again.level) != (call.function, call.level) or again.earlier:
            break
        if between.level != call.level - 1 or not between.earlier or call.is_gap:
            break
        if end + 2 < len(shown) and shown[end + 2].level > again.level:
            break
        times += 1
        end += 2
    return times, end - at
