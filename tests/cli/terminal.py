"""A command at a terminal of its own, typed to and read from as a person does."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

import cases


def set_size(fd, size):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))


class Terminal:
    """Runs a command as the foreground of a new terminal, of so many rows and columns."""

    def __init__(self, *command, size=(0, 0), **environment):
        self.text = ""  # all that was shown
        self.seen = 0   # how much of it expect() has passed
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            set_size(0, size)
            os.environ.update({"TERM": "dumb", **environment})
            os.execvp(command[0], command)

    def close(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0
        os.close(self.fd)

    def read_more(self, deadline):
        ready, _, _ = select.select([self.fd], [], [], max(0, deadline - time.monotonic()))
        if not ready:
            raise AssertionError("nothing more came; so far:\n" + self.text)
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # EIO: nobody has the other side open any more
            data = b""
        self.take(data)
        return data != b""

    def take(self, data):
        self.text += data.decode(errors="replace").replace("\r\n", "\n")

    def expect(self, pattern):
        """Reads until the pattern comes; the match."""
        deadline = time.monotonic() + cases.HANG_S
        while True:
            match = re.compile(pattern).search(self.text, self.seen)
            if match:
                self.seen = match.end()
                return match
            if not self.read_more(deadline):
                raise AssertionError(f"it ended before {pattern!r}:\n" + self.text)

    def type(self, text):
        os.write(self.fd, text.encode())

    def interrupt(self):
        self.type("\x03")

    def leave_gdb(self):
        """Kills the program; the exit status."""
        self.type("kill\n")
        self.expect(r"\(y or n\)")
        self.type("y\n")
        self.expect("killed")
        self.type("quit\n")
        return self.exit_status()

    def exit_status(self):
        """Reads to the end; -N for signal N."""
        deadline = time.monotonic() + cases.HANG_S
        while self.read_more(deadline):
            pass
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        return os.waitstatus_to_exitcode(status)
