"""The debugger's side of the gdb-remote protocol, packet by packet."""

import re
import socket
import subprocess

import cases

START, END, ANY = re.compile(b"[$%]"), re.compile(b"#"), re.compile(b"(?s).")


def frame(payload):
    data = payload if isinstance(payload, bytes) else payload.encode()
    return b"$" + data + b"#%02x" % (sum(data) % 256)


def expand(payload):
    """Undoes run-length encoding."""
    return re.sub(rb"(?s)(.)\*(.)", lambda m: m[1] * (m[2][0] - 28), payload)


def unescape(payload):
    """Undoes the escapes of binary data."""
    return re.sub(rb"(?s)}(.)", lambda m: bytes([m[1][0] ^ 0x20]), payload)


class Gone(Exception):
    """The other side has closed the connection."""


class Debugger:
    """A connection to a server, in its acknowledging mode until stop_acks()."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=cases.HANG_S)
        self.unread = b""
        self.acks = True

    def close(self):
        self.socket.close()

    def send_raw(self, data):
        self.socket.sendall(data)

    def send(self, payload):
        self.send_raw(frame(payload))

    def until(self, mark, behind=0):
        """What comes up to one of the marks, and so many bytes behind it."""
        while not (found := mark.search(self.unread)) or len(self.unread) < found.end() + behind:
            received = self.socket.recv(65536)
            if not received:
                raise Gone
            self.unread += received
        end = found.end() + behind
        read, self.unread = self.unread[:end], self.unread[end:]
        return read

    def byte(self):
        return self.until(ANY)

    def packet(self):
        """The next packet's payload, runs expanded; acknowledged. Notifications are dropped."""
        while True:
            start = self.until(START)[-1:]
            payload = self.until(END, behind=2)[:-3]
            if start == b"$":
                if self.acks:
                    self.send_raw(b"+")
                return expand(payload).decode("latin-1")

    def ask(self, payload):
        """The answer; what is to be shown to the user before it is dropped."""
        self.send(payload)
        while (answer := self.packet()).startswith("O") and answer != "OK":
            pass
        return answer

    def stop_acks(self):
        answer = self.ask("QStartNoAckMode")
        self.acks = False
        return answer

    def greet(self, *features):
        """What a debugger says first, with those that it has besides; the server's features."""
        self.stop_acks()
        return self.ask(";".join(("qSupported:multiprocess+;swbreak+;hwbreak+;qRelocInsn+;"
                                  "vContSupported+", *features)))


class Server:
    """A `tailtrace serve` that listens on a free port; nobody types to its program."""

    def __init__(self, *arguments, env=None):
        self.process = subprocess.Popen(
            [cases.TAILTRACE, "serve", *arguments], stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=env)
        self.said = []
        self.port = None
        for line in self.process.stderr:
            self.said.append(line)
            if found := re.match(r"Listening on port (\d+)", line):
                self.port = int(found[1])
                break

    def wait(self):
        """Its exit status."""
        self.said += self.process.stderr.readlines()
        return self.process.wait(cases.HANG_S)

    def close(self):
        # One that is killed could not take its files away.
        self.process.terminate()
        try:
            self.process.wait(cases.HANG_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stderr.close()
        self.process.stdin.close()
