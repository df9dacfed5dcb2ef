"""The TUI window `tailtrace`: the history around where the program stands.

`layout tailtrace` shows it below the source; it follows every step and every `tailtrace goto`.
"""

import gdb

from . import place, source
from .words import Words

LAYOUT = "tui new-layout tailtrace {-horizontal src 1 tailtrace 1} 2 status 0 cmd 1"


def rows(height):
    """So many lines of the history, with the place in the middle, and what to call them."""
    try:
        history = source.current()
        standing = place.standing(history)
        first = history.first_held(min(standing - height // 2, 1 - height))
        words = Words(history)
        found = []
        for item in history.fetch("items", first, min(-1, first + height - 1)):
            mark = "=>" if item["position"] == standing else "  "
            number = history.number(item["position"])
            if "gap" in item:
                found.append(f"{number} {mark} [{item['gap']}]")
            else:
                found.append(f"{number} {mark} {words.place_of(item)}  "
                             f"{words.instruction(item)}")
        if len(found) < height and standing == 0:
            found.append(f"{0 if history.is_long else history.size + 1} =>")
        if history.is_long:
            return f"history: {standing}", found
        return f"history: {min(history.number(standing), history.size)} of {history.size}", found
    except gdb.GdbError as error:
        return "history", str(error).splitlines()
    except gdb.error as error:
        return "history", [str(error)]


class HistoryWindow:
    """What GDB asks to draw itself. GDB does not ask after a stop: the prompt is the occasion."""

    def __init__(self, window):
        self.window = window
        self.shown = None
        gdb.events.before_prompt.connect(self.follow)

    def close(self):
        gdb.events.before_prompt.disconnect(self.follow)

    def follow(self):
        self.draw(False)

    def render(self):
        self.draw(True)

    def draw(self, anyway):
        if not self.window.is_valid() or self.window.height < 1:
            return
        title, lines = rows(self.window.height)
        if not anyway and self.shown == (title, lines):
            return
        self.shown = (title, lines)
        self.window.title = title
        self.window.erase()
        width = self.window.width
        self.window.write("\n".join(line.replace("\t", " ")[:width - 1] for line in lines))


def install():
    if not hasattr(gdb, "register_window_type"):
        return  # a GDB that was built without the TUI
    gdb.register_window_type("tailtrace", HistoryWindow)
    try:
        gdb.execute(LAYOUT, to_string=True)
    except gdb.error:
        pass  # sourced again: the layout is there
