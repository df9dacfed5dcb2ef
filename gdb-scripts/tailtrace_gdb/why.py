"""The chain of choices that led to a place."""

from . import place
from .walk import Frame
from .words import source_line

# A choice may be thousands of instructions before the one after it, and no further.
MAX_STEPS = 20_000

INDIRECT = ("indirect-jump", "indirect-call")


class Choice:
    """A branch and what it did, so many times in a row."""

    def __init__(self, item):
        self.item = item
        self.times = 1
        self.key = (item["address"], item.get("taken"), item.get("to"))


def place_of(history, argument, newest_arrival):
    """The item that a command's argument means."""
    if argument.strip():
        return newest_arrival(history, argument)["number"]
    return place.standing(history)


def is_choice(item):
    return "taken" in item or item.get("branch") in INDIRECT


class Items:
    """Items around the last one asked for, fetched together."""

    def __init__(self, history):
        self.history = history
        self.known = {}

    def at(self, number):
        if number not in self.known:
            first = max(1, number - 199)
            self.known = {i["number"]: i for i in self.history.fetch("items", first, number)}
        return self.known[number]


def choices_before(history, number, limit):
    """The newest choices in the calls that were open, newest first, equal neighbours joined."""
    frame = Frame(history, number)
    items = Items(history)
    found = []
    for _ in range(MAX_STEPS):
        if not frame.step():
            break
        item = items.at(frame.number)
        if "gap" in item:
            break
        if not is_choice(item):
            continue
        choice = Choice(item)
        if found and found[-1].key == choice.key:
            found[-1].times += 1
        elif len(found) == limit:
            break
        else:
            found.append(choice)
    return found


def choice_line(words, choice):
    item = choice.item
    address = int(item["address"], 16)
    if "taken" in item:
        did = "taken" if item["taken"] else "not taken"
    else:
        did = f"to {words.place(int(item['to'], 16)) or item['to']}" if "to" in item else "left"
    times = f"\t{choice.times} times" if choice.times > 1 else ""
    found = source_line(address)
    where = f"\t{found[0].filename}:{found[1]}" if found else ""
    return (f"{item['number']}\t   {address:#018x} {words.place(address)}:\t"
            f"{words.instruction(item)}\t{did}{times}{where}\n")
