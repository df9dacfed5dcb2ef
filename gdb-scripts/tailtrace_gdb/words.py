"""How addresses, instructions and source lines are written: as GDB's own lists have them."""

import re

import gdb

from . import disassembly
from .styles import styled, styled_instruction, styled_place

listed = []  # the numbers that the last list had, to be completed


class Words:
    """Remembers what it was asked, for as long as one command runs."""

    def __init__(self, history):
        listed.clear()
        self.history = history
        self.architecture = gdb.selected_inferior().architecture()
        self.places = {}
        self.texts = {}

    def place(self, address):
        """"<main+4>", or nothing."""
        if address not in self.places:
            if hasattr(gdb, "format_address"):  # GDB 13
                match = re.search(r" <(.*?)(?:\+(\d+))?>$", gdb.format_address(address))
            else:
                said = gdb.execute(f"info symbol {address:#x}", to_string=True)
                match = re.match(r"(.*?)(?: \+ (\d+))? in section ", said)
            self.places[address] = f"<{match[1]}+{match[2] or 0}>" if match else ""
        return self.places[address]

    def place_of(self, item):
        """The same of an instruction; beside a saved folder alone, as the history has it."""
        told = f"<{item['function']}+{int(item['offset'], 16)}>" if "offset" in item else ""
        return self.place(int(item["address"], 16)) or told

    def instruction(self, item):
        """In the user's flavour, if memory still holds what was executed."""
        address = int(item["address"], 16)
        key = (address, item["bytes"])
        if key not in self.texts:
            text = item["text"]
            try:
                data = bytes.fromhex(item["bytes"])
                memory = gdb.selected_inferior().read_memory(address, len(data)).tobytes()
                if memory == data:
                    with disassembly.plain():
                        text = self.architecture.disassemble(address)[0]["asm"]
            except gdb.error:
                pass
            self.texts[key] = text
        return self.texts[key]

    def line(self, item, modifiers, mark="  "):
        """One instruction; `mark` is two columns wide."""
        address = int(item["address"], 16)
        listed.append(str(self.history.number(item["position"])))
        place = self.place_of(item)
        if "f" in modifiers and place:
            place = f"<+{place.rpartition('+')[2]}"
        name = f" {styled_place(place)}" if place else ""
        raw = ""
        if modifiers & {"r", "b"}:
            raw = f"{bytes.fromhex(item['bytes']).hex(' '):<19}\t"
        return (f"{self.history.number(item['position'])}\t {mark}"
                f"{styled('address', f'{address:#018x}')}{name}:\t{raw}"
                f"{styled_instruction(self.instruction(item))}\n")


def source_line(address):
    """(file, line) as GDB names them, or None."""
    place = gdb.find_pc_line(address)
    if place.symtab is None or not place.line:
        return None
    return place.symtab, place.line


class RecordedFile:
    """A source file that only the history names, where GDB has a symbol table of it."""

    def __init__(self, filename):
        self.filename = filename

    def fullname(self):
        return self.filename


def recorded_line(item):
    """The same as the history has it."""
    return (RecordedFile(item["file"]), item["line"]) if "line" in item else None


def source_line_of(item):
    """The same of an item as GDB knows it, or else, as beside a saved folder alone, the history;
    None for gaps and where there is none."""
    if "gap" in item:
        return None
    return source_line(int(item["address"], 16)) or recorded_line(item)


def line_of(item):
    """The same with the file's whole name."""
    found = source_line_of(item)
    return found and (found[0].fullname(), found[1])


def text_of_line(symtab, line):
    """The line as it is in the source, without its line feed; "" where that cannot be read."""
    try:
        # Compilers count line feeds only, and so does GDB.
        with open(symtab.fullname(), errors="replace", newline="\n") as file:
            return file.readlines()[line - 1].rstrip("\r\n")
    except (OSError, IndexError):
        return ""


def source_text(item):
    """File, line and text of the source line of an item; None where there is none."""
    place = source_line_of(item)
    if place is None:
        return None
    name = styled("filename", place[0].filename)
    return f"{name}:{place[1]}\t{text_of_line(*place)}\n"


def function_blocks(address):
    """Of the functions that an address is in, innermost first; all but the last are inlined."""
    blocks = []
    block = gdb.block_for_pc(address)
    while block is not None and not block.is_static and not block.is_global:
        if block.function is not None:
            blocks.append(block)
        block = block.superblock
    return blocks


def inlined_text(address):
    """"inlined: b in a" where an address is in functions without a frame of their own."""
    names = [block.function.print_name for block in function_blocks(address)]
    return "" if len(names) < 2 else f"inlined: {' in '.join(names)}\n"
