"""Memory of a runner: its default limit, and an Arrow allocator that returns free memory to the system.

Arrow chooses its allocator from an environment variable when it is loaded, for the whole process. So `paimon-py care`
restarts itself with that variable; a runner inside another program does not change the allocator.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping

import pyarrow as pa

from paimon_py.memory import ReadText, memory_limit, read_text

RUNNER_BYTES = 256 << 20
"""The memory of a runner if its process has no limit."""
_ALLOCATOR = "ARROW_DEFAULT_MEMORY_POOL"

Exec = Callable[[str, list[str], Mapping[str, str]], object]


def runner_bytes(read: ReadText = read_text) -> int:
    """The memory limit of the container, or an amount that is enough for files of the default size."""
    return memory_limit(read) or RUNNER_BYTES


def restart_frugally(environment: Mapping[str, str], begin: Exec = os.execve, system: str = os.name) -> None:
    """Restart the process with an allocator that returns free memory early; returns if it already has one.

    Arrow's default (mimalloc) keeps freed memory: about 100 MB more at the peak of compactions. If the user sets the
    variable, it is not changed. On Windows a restarted process gets another id, so the allocator is not changed.
    """
    if _ALLOCATOR not in environment and system == "posix":
        begin(sys.executable, sys.orig_argv, {**environment, **frugal_allocator()})


def frugal_allocator(platform: str = sys.platform) -> dict[str, str]:
    """The environment of the most frugal allocator.

    On Linux that is the C library's, told to take blocks from 64 KiB on from the system and return them when they are
    freed. Elsewhere it is jemalloc, if this build of Arrow has it.
    """
    if platform == "linux":
        return {_ALLOCATOR: "system", "MALLOC_MMAP_THRESHOLD_": str(64 << 10)}
    try:
        pa.jemalloc_memory_pool()
    except NotImplementedError:
        return {_ALLOCATOR: "system"}
    return {_ALLOCATOR: "jemalloc"}


def release_free_memory() -> None:
    """Return unused memory to the system, and have jemalloc do so automatically from now on."""
    pool = pa.default_memory_pool()
    if pool.backend_name == "jemalloc":
        pa.jemalloc_set_decay_ms(0)
    pool.release_unused()
