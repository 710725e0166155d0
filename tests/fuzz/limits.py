"""Bounds on one input: CPU time and memory, and targets that break every promise, to see that the runner notices."""

from __future__ import annotations

import os
import resource
import signal
import sys
from pathlib import Path

from fuzz.target import RIGHT, UNDETECTED, Target

from paimon_py.errors import CorruptionError

CPU_SECONDS = 5
"""Of one input, in all threads; a sound one takes a hundredth."""
HANG_SECONDS = 120
"""Of the clock on the wall; beyond it whoever runs the worker ends it."""
MEMORY_BYTES = 256 << 20
"""By which an input may raise the most memory that was ever resident."""
ADDRESS_BYTES = 3 << 30
"""Of address space above what a worker has when it begins; what asks for more gets a MemoryError."""


class TooSlow(BaseException):
    """An input used up its CPU time."""


def _over(signum, frame):
    raise TooSlow


def limit_process():
    """Bound the address space, and make a timer that ends an input."""
    sizes = Path("/proc/self/statm")
    if sizes.exists():
        used = int(sizes.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + ADDRESS_BYTES, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, _over)


def begin():
    """Start the timer; returns the high-water mark of memory."""
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    return resident_bytes()


def end():
    """Stop the timer."""
    signal.setitimer(signal.ITIMER_PROF, 0)


def resident_bytes():
    """The most memory that was ever resident; `ru_maxrss` begins with the parent's on Linux."""
    if sys.platform.startswith("linux"):
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


# -- promises broken on purpose -----------------------------------------------------------------------------------------


def _abort(rng):
    if rng.random() < 0.2:
        os.abort()
    return RIGHT


def _spin(rng):
    while True:
        pass


def _raise(error):
    raise error


def planted():
    """Targets that misbehave; they have no weight, so that only their own test runs them."""
    yield Target("planted-abort", _abort, 0)
    yield Target("planted-loop", _spin, 0)
    yield Target("planted-memory", lambda rng: RIGHT if b"x" * (2 * MEMORY_BYTES) else RIGHT, 0)
    yield Target("planted-bomb", lambda rng: RIGHT if bytearray(2 * ADDRESS_BYTES) else RIGHT, 0)
    yield Target("planted-raw", lambda rng: {}["raw"], 0)
    yield Target("planted-pathless", lambda rng: _raise(CorruptionError("something is damaged somewhere")), 0)
    yield Target("planted-silent", lambda rng: UNDETECTED, 0)
    yield Target("planted-right", lambda rng: RIGHT, 0)
