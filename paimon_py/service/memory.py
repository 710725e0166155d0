"""Memory of a runner: how much it takes by default, and an allocator of Arrow that gives back what is free.

Arrow chooses its allocator when it is loaded, by an environment variable, and for the whole process. So `paimon-py
care` begins again with that variable; a runner inside another program leaves the allocator as it is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping

import pyarrow as pa

from paimon_py.memory import ReadText, memory_limit, read_text

RUNNER_BYTES = 256 << 20
"""What a runner takes on a machine whose process has no limit."""
_ALLOCATOR = "ARROW_DEFAULT_MEMORY_POOL"

Exec = Callable[[str, list[str], Mapping[str, str]], object]


def runner_bytes(read: ReadText = read_text) -> int:
    """The limit of the container, or what is enough for tables with files of the default size."""
    return memory_limit(read) or RUNNER_BYTES


def restart_frugally(environment: Mapping[str, str], begin: Exec = os.execve, system: str = os.name) -> None:
    """Begin the process again with an allocator that gives free memory back early; return if it has one already.

    Arrow's default (mimalloc) keeps what it once had: about 100 MB more at the peak of compactions. A user who sets
    the variable chooses. On Windows a process that begins again is another one, so the allocator stays.
    """
    if _ALLOCATOR not in environment and system == "posix":
        begin(sys.executable, sys.orig_argv, {**environment, _ALLOCATOR: frugal_backend()})


def frugal_backend() -> str:
    """The most frugal allocator in this build of Arrow."""
    try:
        pa.jemalloc_memory_pool()
    except NotImplementedError:
        return "system"
    return "jemalloc"


def release_free_memory() -> None:
    """Give memory that nothing uses back to the system, and let jemalloc do so from now on by itself."""
    pool = pa.default_memory_pool()
    if pool.backend_name == "jemalloc":
        pa.jemalloc_set_decay_ms(0)
    pool.release_unused()
