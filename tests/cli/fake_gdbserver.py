#!/usr/bin/env python3
"""A server below that does what its environment tells, for what a real one would rarely do.

FAKE_GDBSERVER is a JSON object: `silent` (never answers), `answers` (by packet: the payload, or
null for none at all, "exit:N" to end there, or "file:PATH" for what is read there, which may be
late), `raw` (by packet: bytes to write as they are, or a
list of them, one for each time, until there are no more).
What is in neither is answered with an empty packet.
"""

import json
import os
import sys

MONITOR_EXIT = "qRcmd," + b"exit".hex()


def frame(payload):
    data = payload.encode("latin-1")
    return b"$" + data + b"#%02x" % (sum(data) % 256)


def packets():
    """Payloads and breaks from stdin, as they come."""
    data = b""
    while chunk := os.read(0, 65536):
        data += chunk
        while data:
            if data[:1] != b"$":
                if data[:1] == b"\x03":
                    yield "\x03"
                data = data[1:]
                continue
            end = data.find(b"#")
            if end < 0 or len(data) < end + 3:
                break
            yield data[1:end].decode("latin-1")
            data = data[end + 3:]


def main():
    plan = json.loads(os.environ["FAKE_GDBSERVER"])
    answers = {"QStartNoAckMode": "OK", "qSupported": "PacketSize=4000;multiprocess+",
               MONITOR_EXIT: "exit:0"}
    answers.update(plan.get("answers", {}))
    for packet in packets():
        if plan.get("silent") or packet == "\x03":
            continue
        name = packet if packet in answers else packet.split(":")[0]
        raw = plan.get("raw", {}).get(packet, [])
        if raw:
            os.write(1, (raw.pop(0) if isinstance(raw, list) else raw).encode("latin-1"))
            continue
        answer = answers.get(name, "")
        if answer is None:
            continue
        if answer.startswith("exit:"):
            sys.exit(int(answer[len("exit:"):]))
        if answer.startswith("file:"):
            with open(answer[len("file:"):], encoding="ascii") as file:
                answer = file.read()
        os.write(1, frame(answer))


main()
