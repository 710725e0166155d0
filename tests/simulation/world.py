"""Several actors on one store, of which exactly one runs at any time: who makes the next store call is a choice.

Every store call and every wait of an actor is a step. Before it a chooser says what happens: nothing, another actor goes
on first, the clock jumps, the call fails, the actor dies. Actors are threads that hand a baton to each other, so the
same choices give the same run.
"""

from __future__ import annotations

import atexit
import io
import itertools
import threading
from typing import NamedTuple

from paimon_py.env import Env, SerialPool
from paimon_py.errors import CommitUnknownError, PaimonError, StorageError, StorageUnknownError

FAULTS = ("before", "after", "lost", "unsent", "die", "die_after")
"""What a failing call does: nothing happened; it happened; it happened and the answer is lost; it did not and the answer
is lost; the actor dies before; the actor dies after."""

STEPS_MAX = 20_000


class Death(BaseException):
    """The actor's process has ended: no clean-up reaches the store."""


class Event(NamedTuple):
    """What happens at a step: `what` is "to" (the actor `value` goes on first), "jump" (by seconds), or a fault."""

    actor: int
    step: int
    what: str
    value: int = 0


class When(NamedTuple):
    """An event that waits for a call: the actor's `nth` call of `verb` whose path holds `part`, or the step `after`."""

    actor: int
    verb: str
    part: str
    what: str
    value: int = 0
    nth: int = 1
    after: bool = False


class Effect(NamedTuple):
    """A change of the store, or a look at a snapshot, by whom, in which call."""

    actor: Actor
    call: Call | None
    verb: str
    path: str
    data: bytes | None = None


class Call:
    """A call of the library's verbs and how it ended: done, failed (for certain), unknown, died, bug."""

    def __init__(self, actor, deed, what):
        self.actor = actor
        self.deed = deed
        self.what = what
        self.end = "died"
        self.result = None
        self.error = None
        self.began = self.ended = 0
        self.faulty = False

    def __repr__(self):
        return f"{self.actor.index}:{self.what} {self.end} {self.result or self.error or ''}"


class Ids:
    """Names and processes that differ by owner; jitter is fixed."""

    def __init__(self, owner):
        self.owner = owner
        self.numbers = itertools.count()
        self.is_over = False

    def uuid(self):
        return f"{self.owner}-{next(self.numbers)}"

    def process(self):
        return 0 if self.is_over else int.from_bytes(self.owner.encode(), "big")

    def jitter(self):
        return 0.5


class Clock:
    """One clock for all: it goes on a little at every step, and by waiting and jumps."""

    def __init__(self, seconds=0.0):
        self.seconds = seconds

    def millis(self):
        return 1_700_000_000_000 + int(self.seconds * 1000)

    def local_millis(self):
        return self.millis()

    def elapsed(self):
        return self.seconds

    def sleep(self, seconds):
        self.seconds += seconds


class ActorClock(Clock):
    """The clock as an actor sees it: waiting is a step."""

    def __init__(self, world, actor):
        self.world = world
        self.actor = actor

    @property
    def seconds(self):
        return self.world.clock.seconds

    def sleep(self, seconds):
        self.world.step(self.actor, "sleep", "")
        self.world.clock.sleep(seconds)


class ActorStore:
    """The store as an actor sees it: every verb is a step, every change is noted in the world's journal."""

    def __init__(self, world, actor):
        self.world = world
        self.actor = actor

    def get(self, path):
        data = self._read("get", path, self.world.store.get)
        if "/snapshot/snapshot-" in path:
            self._note("get", path)
        return data

    def list(self, directory):
        return self._read("list", directory, self.world.store.list)

    def stat(self, path):
        return self._read("stat", path, self.world.store.stat)

    def open_read(self, path):
        return self._read("open_read", path, self.world.store.open_read)

    def put_new(self, path, data, *, within=None):
        def act():
            created = self.world.store.put_new(path, data, within=within)
            if created:
                self._note("put_new", path, data)
            return created

        return self._change("put_new", path, act)

    def require_new(self, directory):
        self.world.store.require_new(directory)

    def put(self, path, data, *, within=None):
        def act():
            self.world.store.put(path, data, within=within)
            self._note("put", path, data)

        return self._change("put", path, act)

    def delete(self, path):
        def act():
            there = self.world.store.stat(path) is not None
            self.world.store.delete(path)
            if there:
                self._note("delete", path)

        return self._change("delete", path, act)

    def delete_tree(self, directory):
        def act():
            gone = below(self.world.store, directory)
            self.world.store.delete_tree(directory)
            for path in gone:
                self._note("delete", path)

        return self._change("delete_tree", directory, act)

    def open_write(self, path, *, within=None):
        def act():
            self.world.store.open_write(path, within=within)
            self._note("put", path, b"")

        self._change("open_write", path, act)
        return _NewFile(self, path)

    def make_directory(self, path):
        return self._change("make_directory", path, lambda: self.world.store.make_directory(path))

    def remove_directory(self, path):
        return self._change("remove_directory", path, lambda: self.world.store.remove_directory(path))

    def rename_directory(self, source, target):
        def act():
            self.world.store.rename_directory(source, target)
            self.world.moves.append((source, target))
            self._note("rename", source, target.encode())

        return self._change("rename_directory", source, act)

    def _read(self, verb, path, act):
        fault = self.world.step(self.actor, verb, path)
        if fault:
            self._fail(fault, verb, path)
        return act(path)

    def _change(self, verb, path, act):
        fault = self.world.step(self.actor, verb, path)
        if not fault:
            return act()
        if fault in ("after", "lost", "die_after"):
            act()
        return self._fail(fault, verb, path)

    def _fail(self, fault, verb, path):
        if self.actor.current is not None:
            self.actor.current.faulty = True
        if fault in ("die", "die_after"):
            self.actor.dead = True
            raise Death(f"{verb} {path}")
        kind = StorageUnknownError if fault in ("lost", "unsent") else StorageError
        raise kind(f"{fault} {verb} {path}", path=path, operation=verb, transient=True)

    def _note(self, verb, path, data=None):
        self.world.journal.append(Effect(self.actor, self.actor.current, verb, path, data))


class _NewFile(io.BytesIO):
    """A file being written: closing is the step that makes its bytes visible, wherever the file lies by then."""

    def __init__(self, store, path):
        super().__init__()
        self._owner = store
        self._path = path
        self._moves = len(store.world.moves)

    def close(self):
        if self.closed:
            return
        data = self.getvalue()
        super().close()
        if self._owner.actor.over:
            return  # collected as garbage after the run
        self._owner._change("put", self._path, lambda: self._finish(data))

    def _finish(self, data):
        world, path = self._owner.world, self._path
        for source, target in world.moves[self._moves :]:
            path = target + path.removeprefix(source) if path.startswith(source + "/") else path
        if world.store.stat(path) is not None:  # whoever deletes an open file loses what comes after
            world.store.put(path, data)
            self._owner._note("put", path, data)


class Actor:
    """One process: a program, an environment and a view of the store."""

    def __init__(self, world, index, program):
        self.world = world
        self.index = index
        self.program = program
        self.dead = self.over = self.started = False
        self.steps = 0
        self.current = None
        self.store = ActorStore(world, self)
        self.env = Env(ActorClock(world, self), Ids(f"a{index}"), SerialPool())
        self.memory = {}
        self.quiet = False
        self.worker = None

    def call(self, deed, function, what=""):
        """Call the library; what comes of it is noted. Gives the Call."""
        call = Call(self, deed, what or (deed.key if deed else function.__name__))
        outer, self.current = self.current, call
        call.began = len(self.world.journal)
        self.world.calls.append(call)
        try:
            call.result, call.end = function(), "done"
        except CommitUnknownError as error:
            call.error, call.end = error, "unknown"
        except PaimonError as error:
            call.error, call.end = error, "failed"
        except Exception as error:  # noqa: BLE001 - the oracle reports the error
            call.error, call.end = error, "bug"
        finally:
            call.ended = len(self.world.journal)
            self.current = outer
        return call

    def live(self):
        try:
            self.program(self)
        except Death:
            self.dead = True
            self.env.ids.is_over = True  # what Python collects now, nobody collects in a process that was killed
        except PaimonError as error:
            self.memory["gave up"] = error
        except Exception as error:  # noqa: BLE001 - raised by run()
            self.world.errors.append(error)
        self.over = True
        self.world.next_after(self)


class Worker:
    """A thread that lives longer than the runs in which it plays an actor."""

    def __init__(self):
        self.gate = threading.Lock()
        self.gate.acquire()
        self.job = None
        self.thread = threading.Thread(target=self._loop, daemon=True, name="actor")
        self.thread.start()

    def _loop(self):
        while True:
            self.gate.acquire()
            if self.job is None:
                return
            self.job()

    def end(self):
        self.job = None
        self.gate.release()
        self.thread.join()


_WORKERS: list[Worker] = []


@atexit.register
def _end_workers():
    for worker in _WORKERS:
        worker.end()


class World:
    """One run."""

    def __init__(self, store, clock, programs, chooser):
        self.store = store
        self.clock = clock
        self.chooser = chooser
        self.journal: list[Effect] = []
        self.calls: list[Call] = []
        self.errors: list[BaseException] = []
        self.moves: list[tuple[str, str]] = []
        self.paused: list[Actor] = []
        self.steps = 0
        self.actors = [Actor(self, index, program) for index, program in enumerate(programs)]
        self._done = threading.Lock()
        self._done.acquire()

    def run(self):
        while len(_WORKERS) < len(self.actors):
            _WORKERS.append(Worker())
        for actor, worker in zip(self.actors, _WORKERS):
            actor.worker, worker.job = worker, actor.live
        self.actors[0].started = True
        self.actors[0].worker.gate.release()
        self._done.acquire()
        if self.errors:
            raise self.errors[0]

    def step(self, actor, verb, path):
        """What happens before a store call; gives the fault that the call has, if any."""
        if actor.dead:
            raise Death(verb)
        actor.steps += 1
        self.steps += 1
        self.clock.seconds += 0.001
        if self.steps > STEPS_MAX:
            actor.dead = True
            self.errors.append(AssertionError(f"no end after {STEPS_MAX} steps"))
            raise Death("no end")
        fault = ""
        if actor.quiet:
            return fault
        for event in self.chooser.events(self, actor, verb, path):
            if event.what == "to":
                self._hand_over(actor, event.value)
            elif event.what == "jump":
                self.clock.seconds += event.value
            else:
                fault = event.what
        return fault

    def _hand_over(self, actor, index):
        if index == actor.index or index >= len(self.actors) or self.actors[index].over:
            return
        other = self.actors[index]
        self.paused = [one for one in self.paused if one is not other]
        self.paused.append(actor)
        other.started = True
        other.worker.gate.release()
        actor.worker.gate.acquire()

    def next_after(self, actor):
        """Who goes on when an actor has ended: who paused last, else who has not begun, else nobody."""
        waiting = self.paused[-1:] or [one for one in self.actors if not one.started][:1]
        if not waiting:
            self._done.release()
            return
        (other,) = waiting
        self.paused = [one for one in self.paused if one is not other]
        other.started = True
        other.worker.gate.release()


class Scripted:
    """Plays given events."""

    def __init__(self, events):
        self._events: dict[tuple[int, int], list[Event]] = {}
        self._waiting = [[event, event.nth] for event in events if isinstance(event, When)]
        self._due: list[When] = []
        for event in events:
            if isinstance(event, Event):
                self._events.setdefault((event.actor, event.step), []).append(event)

    def events(self, world, actor, verb, path):
        found = list(self._events.get((actor.index, actor.steps), ()))
        if self._waiting or self._due:
            found += [event for event in self._due if event.actor == actor.index]
            self._due = [event for event in self._due if event.actor != actor.index]
            found += self._met(actor, verb, path)
        return found

    def _met(self, actor, verb, path):
        for waiting in list(self._waiting):
            event = waiting[0]
            if event.actor != actor.index or event.verb != verb or event.part not in path:
                continue
            waiting[1] -= 1
            if waiting[1] == 0:
                self._waiting.remove(waiting)
                if not event.after:
                    yield event
                else:
                    self._due.append(event)


class Random:
    """Draws events and notes them.

    `often`: how probable a change of actors is at a step; steps that decide over snapshots count more. `faults`,
    `jumps`: how many there may be. `keen`: calls (actor, verb, part of the path) at which half the time what is named
    there happens: "to" another, "fault", or "any" of both.
    """

    def __init__(self, rng, *, often, faults, jumps, jump_lengths=(1, 700, 4000, 100_000), fault_share=0.03, keen=()):
        self.rng = rng
        self.often = often
        self.faults = faults
        self.jumps = jumps
        self.jump_lengths = jump_lengths
        self.fault_share = fault_share
        self.keen = keen
        self.drawn: list[Event] = []

    def events(self, world, actor, verb, path):
        found = list(self._drawn(world, actor, verb, path))
        self.drawn += found
        return found

    def _drawn(self, world, actor, verb, path):
        kinds = FAULTS
        draw, hot = self.rng.random(), 4 if "/snapshot" in path or verb == "delete" else 1
        to, fault = self.often * hot, self.fault_share * (2 if verb == "put_new" else 1)
        for number, keen_verb, part, what in self.keen:
            if (number, keen_verb) == (actor.index, verb) and part in path:
                to, fault = {"to": (0.5, 0), "fault": (0, 0.5), "any": (0.4, 0.4)}[what]
                kinds = FAULTS[:4]
        if draw < to:
            others = [one.index for one in world.actors if not one.over and one is not actor]
            if others:
                yield Event(actor.index, actor.steps, "to", self.rng.choice(others))
        elif draw > 1 - fault and self.faults:
            self.faults -= 1
            yield Event(actor.index, actor.steps, self.rng.choice(kinds))
        if self.jumps and self.rng.random() < 0.02:
            self.jumps -= 1
            yield Event(actor.index, actor.steps, "jump", self.rng.choice(self.jump_lengths))


def below(store, directory):
    """Paths of all files below a directory."""
    found = []
    for child in store.list(directory):
        found += below(store, child.path) if child.is_directory else [child.path]
    return found
