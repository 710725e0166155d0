"""The memory that the process may use, and the default shares of the parts of the library.

A container gives its limit by control groups: `memory.max` (version 2) or `memory.limit_in_bytes` (version 1), in the
group of the process or in one above it; the lowest counts. A process without a limit has the defaults of a large
machine. Explicit options of tables and arguments of callers always count as they are.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

import msgspec

ReadText = Callable[[str], "str | None"]

_ROOT = "/sys/fs/cgroup"
_NONE = 1 << 50
"""Version 1 says no limit by a number near 2^63."""
_BASE = 96 << 20
"""The memory of the interpreter and the imported libraries."""
_OF_A_THREAD = 128 << 20


def read_text(path: str) -> str | None:
    """The text of a small file of the system; None if there is none that can be read."""
    try:
        with io.FileIO(path) as file:
            return file.read(1 << 16).decode("utf-8", "replace")
    except OSError:
        return None


def memory_limit(read: ReadText = read_text) -> int | None:
    """The lowest limit of the control groups of this process, in bytes; None if there is none."""
    found = [limit for path in _limit_files(read) if (limit := _bytes_of(read(path))) is not None]
    return min(found, default=None)


def _limit_files(read: ReadText) -> Iterator[str]:
    """Files that may hold a limit: of each group from that of the process up to the root.

    In a container the path of the group may not exist below the mount, whose root is the group of the container then.
    """
    for line in (read("/proc/self/cgroup") or "").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            mount, name = _ROOT, "memory.max"
        elif "memory" in controllers.split(","):
            mount, name = f"{_ROOT}/memory", "memory.limit_in_bytes"
        else:
            continue
        steps = [step for step in path.split("/") if step and step != ".."]
        for count in range(len(steps), -1, -1):
            yield "/".join([mount, *steps[:count], name])


def _bytes_of(text: str | None) -> int | None:
    text = (text or "").strip()
    if not text.isdecimal():
        return None  # "max", or no such file
    return int(text) if 0 < int(text) < _NONE else None


class MemoryShares(msgspec.Struct, frozen=True):
    """The default shares of memory in a process with a limit. None: no limit.

    Attributes:
        limit_bytes: the limit of the whole process.
    """

    limit_bytes: int | None = None

    def cap(self, default_bytes: int, divisor: int) -> int:
        """The default of a large machine, or a share of the limit if that is less."""
        return default_bytes if self.limit_bytes is None else min(default_bytes, self.limit_bytes // divisor)

    @property
    def rows_bytes(self) -> int | None:
        """The memory for rows, without that of the interpreter and of reading more; None: no limit."""
        return None if self.limit_bytes is None else max(self.limit_bytes - 2 * _BASE, self.limit_bytes // 2)

    def threads(self, cores: int) -> int:
        """The number of threads that may compute at once: each keeps some windows of rows in memory."""
        if self.limit_bytes is None:
            return cores
        return max(1, min(cores, (self.limit_bytes - _BASE) // _OF_A_THREAD))


UNLIMITED = MemoryShares()
"""A process without a limit."""
