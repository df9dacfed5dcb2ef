"""The packets by which the GDB commands ask `tailtrace serve`."""

import shutil

import pytest
from test_gdb_scripts import RECORD, talk, talk_behind_a_long_history

pytestmark = pytest.mark.skipif(shutil.which("gdb") is None, reason="GDB is not installed")


# What a script asks behind a question that it does not wait for is answered, not that one.
QUESTIONS = """
import gdb, json
def ask(words):
    packet = b"qTailtrace:" + words.encode().hex().encode() if words else b"qTailtrace.more"
    return gdb.selected_inferior().connection.send_packet(packet)
ask("calls 1 0")
answer = ask("items -1 1")
while answer == b"w":
    answer = ask("")
print([json.loads(line).get("schema") for line in
       answer[1:].replace(b"}]", b"}").decode().splitlines()])
print(ask(""), ask("no-such-thing")[:27])
def answered(words):
    answer = ask(words)
    while answer == b"w":
        answer = ask("")
    return json.loads(answer[1:].replace(b"}]", b"}").splitlines()[0])
ask("calls 1 0")
print(gdb.selected_inferior().connection.send_packet(b"qTailtrace.stop"))
print(answered("calls 1 0")["calls"] > 600000, answered("items -1 0")["schema"])
print(gdb.selected_inferior().connection.send_packet(b"qTailtrace"))
"""


def test_the_server_answers_the_newest_question(tmp_path):
    (tmp_path / "questions.py").write_text(QUESTIONS)
    said = talk_behind_a_long_history("set remotetimeout 100", f"source {tmp_path}/questions.py")
    assert said[-1].splitlines() == [
        "['tailtrace.items/1', None]",
        "b'aerror: nothing was asked for\\n' b'aerror: there is no command'",
        "b'OK'", "True tailtrace.items/1", "None"]


INTERRUPTED = """
import types
from tailtrace_gdb import server
sent = []
class Link:
    def send_packet(self, packet):
        sent.append(packet)
        if packet == b"qTailtrace.more":
            raise KeyboardInterrupt
        return b"w"
inferior = types.SimpleNamespace(connection=Link())
server.gdb = types.SimpleNamespace(**{**vars(gdb), "selected_inferior": lambda: inferior})
try:
    server.ask("calls 1 0")
except KeyboardInterrupt:
    print(sent[1:])
"""


def test_an_interrupt_stops_the_server_too(tmp_path):
    (tmp_path / "interrupted.py").write_text(INTERRUPTED)
    said = talk(f"source {tmp_path}/interrupted.py")
    assert said[-1] == "[b'qTailtrace.more', b'qTailtrace.stop']\n"


# GDB takes packets byte by byte.
PACKED = """
import gdb
from tailtrace_gdb.server import ask_raw, unescaped
def answer_to(kind):
    packet = kind + b"items -1000 1000".hex().encode()
    answer = b"w"
    while answer == b"w":
        answer = gdb.selected_inferior().connection.send_packet(packet)
        packet = b"qTailtrace.more"
    return answer
plain, packed = answer_to(b"qTailtrace:"), answer_to(b"qTailtrace.packed:")
print(ask_raw("items -1000 1000") == unescaped(plain[1:]), len(packed) < len(plain) / 10)
"""


def test_answers_are_packed(tmp_path):
    (tmp_path / "packed.py").write_text(PACKED)
    said = talk(*RECORD, f"source {tmp_path}/packed.py")
    assert said[-1] == "True True\n"
