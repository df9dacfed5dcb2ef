"""The plugin's commands, with the ends of their words.

LLDB (22) asks commands in Python, and none in C++, how a word may go on. So those that are seen are
here: they know that, from the plugin's table and the command line's, and hand on all that they are
told to the plugin's own, which have a hidden name.

Threading: on LLDB's threads, for the time of one command or of one key.
"""

import functools
import json
import re
import subprocess

import lldb

# Commands of LLDB's own whose words go on in the same way.
FUNCTIONS, SOURCES, FILES = "breakpoint set --name ", "breakpoint set --file ", "trace load "
PLACES = (FUNCTIONS, SOURCES)
# By the names that the tables have for words and values.
KINDS = {"LOCATION": PLACES, "FUNCTION": PLACES, "FOLDER": (FILES,), "OTHER": (FILES,),
         "FILE": (FILES,)}
THREAD = "[PID.]TID[#N]"
MOST = 1000  # functions and files that are offered

_table = {}  # of the plugin: what it is called, and its commands


@functools.cache
def _verbs():
    """The command line's verbs: of each its options, by each of their names."""
    said = subprocess.run([_table["program"], "help", "--json"], check=True, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout
    return {verb["name"]: {name: option for option in verb["options"] for name in option["names"]}
            for verb in json.loads(said)["verbs"]}


def _options_or_none(row):
    """The same of a command of the plugin: {} where it has none, or nobody can say."""
    try:
        return _verbs()[row["verb"]] if row["verb"] else {}
    except (OSError, LookupError, ValueError, subprocess.SubprocessError):  # no command line here
        return {}


def _of_lldb(debugger, command, word):
    found = lldb.SBStringList()
    debugger.GetCommandInterpreter().HandleCompletion(command + word, len(command + word), 0, MOST,
                                                      found)
    return [found.GetStringAtIndex(i) for i in range(1, found.GetSize())]  # behind what all share


def _kind(debugger, kind, word):
    """What a word of a kind may be: PLACES and the like have to begin already."""
    if kind == THREAD:
        threads = debugger.GetSelectedTarget().GetProcess().threads
        return [str(thread.GetThreadID()) for thread in threads]
    if kind.islower():
        return [kind]  # the word itself
    commands = KINDS.get(kind, ())
    if commands == PLACES and not word:
        return []
    return [text + ":" * (command == SOURCES)
            for command in commands for text in _of_lldb(debugger, command, word)]


def _help_of_options(row):
    shown = {}  # an option may have several names
    for option in _options_or_none(row).values():
        head = ", ".join(option["names"]) + "=" * bool(option["value"]) + option["value"]
        shown[head] = f"  {head}\n      {option['text']}"
    return shown.values()


def _values(debugger, option, word):
    return option["choices"] or _kind(debugger, option["value"], word)


def _kinds(arguments):
    """`[OPTIONS] A [B | C]`: of each word that is no option, its kinds: [["A"], ["B", "C"]]."""
    words = re.sub(r"[][]", "", arguments).replace(" | ", "|").split()
    return [word.split("|") for word in words if word != "OPTIONS" and not word.startswith("-")]


def _offers(debugger, row, before, word):
    """What a word may go on as, with descriptions; `before` it are those words."""
    options = _options_or_none(row)
    name, equals, value = word.partition("=")
    if equals and name in options:
        return {f"{name}={end}": "" for end in _values(debugger, options[name], value)}
    if before and options.get(before[-1], {}).get("value"):
        return dict.fromkeys(_values(debugger, options[before[-1]], word), "")
    if word.startswith("-"):
        return {name + "=" * bool(option["value"] and name.startswith("--")): option["text"]
                for name, option in options.items()}
    kinds = _kinds(row["arguments"])
    at = sum(not one.startswith("--") for one in before)
    return {text: "" for kind in (kinds[at] if at < len(kinds) else [])
            for text in _kind(debugger, kind, word)}


def _quoted(word):
    """As LLDB reads it again as one word, without computing what is in it."""
    return '"' + re.sub(r'([\\"`])', r"\\\1", word) + '"'


class Command:
    """One of the table; to LLDB it has no options, which would read positions such as -14."""

    row = {}

    def __init__(self, debugger, _):
        self.debugger = debugger

    def get_flags(self):
        return 0

    def get_options_definition(self):
        return {}

    def get_args_definition(self):
        any_words = [[{"arg_type": lldb.eArgTypeValue, "repeat": "star"}]]
        return any_words if self.row["arguments"] else []

    def get_short_help(self):
        return self.row["help"]

    def get_long_help(self):
        return "\n".join(["", f"    {self.row['syntax']}", "", *_help_of_options(self.row)])

    def get_repeat_command(self, _):
        return self.row["repeat"]

    def handle_argument_completion(self, words, at, cursor):
        word = words[at][:cursor] if at < len(words) else ""
        offers = _offers(self.debugger, self.row, words[:at], word)
        fitting = sorted(text for text in offers if text.startswith(word))[:MOST]
        if len(fitting) == 1:
            more = fitting[0].endswith(("=", ":", "/"))
            return {"completion": fitting[0], "mode": "partial" if more else "complete"}
        return {"values": fitting, "descriptions": [offers[text] for text in fitting]}

    def __call__(self, debugger, words, context, result):
        words = [_table["hidden"], self.row["name"], *map(_quoted, words)]
        debugger.GetCommandInterpreter().HandleCommand(" ".join(words), context, result)


def add(debugger, table):
    """Adds the commands that a plugin's table has."""
    _table.update(json.loads(table))
    lines = [f"command container add --help \"{_table['help']}\" tailtrace"]
    for row in _table["commands"]:
        name = row["name"].replace("-", "_").capitalize()
        globals()[name] = type(name, (Command,), {"row": row})
        lines.append("command script add --overwrite --parsed --synchronicity current "
                     f"--class {__name__}.{name} tailtrace {row['name']}")
    for line in lines:
        debugger.HandleCommand(line)
