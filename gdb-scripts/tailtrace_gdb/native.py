"""What GDB runs itself, without a server: the processor's own tracing records it, by events that
the Python package opens on the program's threads.

GDB tells of a thread before it runs, so its history begins with its first instruction. What a
thread did is read when somebody asks, once a stop.
"""

import gdb

from .errors import user_error
from .package import PackageHistory, attempt, package

ENGINES = ("auto", "pt", "bts", "lbr")

_recordings = {}  # by the inferior's number
_awaited = {}     # engines that programs are to be recorded by once they run; by the same


class Recording:
    """The threads of a process that GDB has."""

    def __init__(self, inferior, engine):
        self.inferior = inferior
        self.pid = inferior.pid
        self.attached = attempt(lambda module: module.attach(self.pid, engine=engine))
        self.remarks = attempt(lambda _: self.attached.take_remarks())
        self.stops = 0
        self.histories = {}

    def moves(self):
        """What was read is of the past from here on."""
        self.stops += 1
        self.histories.clear()

    def follow(self, tid):
        module = package()
        try:
            self.attached.follow(tid)
        except module.GoneError:
            pass  # GDB tells of a thread when it hears of its end, too
        except module.Error as error:
            # The program goes on: nobody is there to be told but by a line.
            gdb.write(f"thread {tid} is not recorded: {error}\n", gdb.STDERR)

    def threads(self):
        """The ids of those that are there and recorded."""
        recorded = set(self.attached.threads)
        return [tid for tid in map(tid_of, self.inferior.threads()) if tid in recorded]

    def history(self, tid):
        if tid not in self.histories:
            taken = attempt(lambda _: self.attached.snapshot_thread(tid))
            self.histories[tid] = PackageHistory(taken, "process", self.stops)
        return self.histories[tid]

    def save(self, path):
        """How many threads were saved."""
        sources = [self.history(tid).source for tid in self.threads()]
        attempt(lambda module: module.Trace.of(f"process {self.pid}", sources).save(path))
        return len(sources)


def tid_of(thread):
    pid, lwp, _ = thread.ptid
    return lwp or pid


def is_native(inferior):
    """Whether GDB runs it itself, or would."""
    connection = inferior.connection
    return connection is None or connection.type == "native"


def current():
    """The recording of the selected inferior, or None."""
    inferior = gdb.selected_inferior()
    found = _recordings.get(inferior.num)
    if found is not None and found.pid != inferior.pid:
        stop(inferior)  # the process is another one now
        return None
    return found


def start(inferior, engine):
    """Records the program, or will as soon as it runs. Returns the recording, if it has begun."""
    stop(inferior)
    if not inferior.pid:
        if inferior.progspace.filename is None:
            raise user_error("cannot record", "GDB has no program", "file PROGRAM")
        try_engine(engine)
        _awaited[inferior.num] = engine
    else:
        _recordings[inferior.num] = Recording(inferior, engine)
    follow_events()
    return _recordings.get(inferior.num)


def try_engine(engine):
    """Whether it would record, or the best of them; no is said as an error."""
    refusals = []
    for name in ENGINES[1:] if engine == "auto" else [engine]:
        try:
            attempt(lambda module, name=name: module._core.try_hardware(name))
            return
        except gdb.GdbError as error:
            refusals.append(error)
    raise refusals[0]


def stop(inferior):
    """Ends it; whether there was anything to end."""
    return end(inferior.num)


def end(number):
    awaited = _awaited.pop(number, None)
    ended = _recordings.pop(number, None)
    if ended is not None:
        ended.attached.stop()
    follow_events()
    return bool(awaited or ended)


def end_all():
    for number in {*_awaited, *_recordings}:
        end(number)


def of_selected_thread():
    thread = gdb.selected_thread()
    if thread is None:
        raise user_error("cannot show a history", "no thread is selected")
    return current().history(tid_of(thread))


def on_new_thread(event):
    thread = event.inferior_thread
    recording = _recordings.get(thread.inferior.num)
    if recording is not None and recording.pid == thread.ptid[0]:
        recording.follow(tid_of(thread))


def on_move(event):
    for inferior in gdb.inferiors():
        if inferior.num in _awaited and inferior.pid and is_native(inferior):
            begin_awaited(inferior)
        if inferior.num in _recordings:
            _recordings[inferior.num].moves()


def begin_awaited(inferior):
    """The program stands at its first instruction."""
    try:
        tell(start(inferior, _awaited[inferior.num]))
    except gdb.GdbError as error:
        stop(inferior)
        gdb.write(f"{error}\n", gdb.STDERR)


def on_exit(event):
    stop(event.inferior)


def tell(recording):
    """Says that the recording has begun, and what is otherwise than asked."""
    gdb.write(f"Recording with {recording.attached.engine}.\n")
    for remark in recording.remarks:
        gdb.write(f"note: {remark}\n")


EVENTS = (("new_thread", on_new_thread), ("cont", on_move), ("exited", on_exit))

_state = {"begun": False, "displaced": None}


def follow_events():
    """GDB's events are listened to as long as there is something to record."""
    wanted = bool(_recordings or _awaited)
    if wanted == _state["begun"]:
        return
    _state["begun"] = wanted
    for name, handler in EVENTS:
        registry = getattr(gdb.events, name)
        (registry.connect if wanted else registry.disconnect)(handler)
    step_in_place(wanted)


def step_in_place(wanted):
    """Where GDB steps over a breakpoint by executing a copy of the instruction elsewhere, the trace
    has an instruction there that nobody knows. With its own recordings GDB does not do that either.
    """
    if wanted:
        _state["displaced"] = gdb.parameter("displaced-stepping")
        gdb.execute("set displaced-stepping off")
    else:
        word = {True: "on", False: "off"}.get(_state["displaced"], "auto")
        gdb.execute(f"set displaced-stepping {word}")
