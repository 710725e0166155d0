"""A path on local disk for packages that cannot read an open file."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

import pyarrow as pa

from paimon_py.env import SpillPlace, TemporarySpill
from paimon_py.errors import StorageError

_COPY_BYTES = 1 << 20
SPILL = TemporarySpill()
"""Space for copies where the caller names none."""


def local_path(source: BinaryIO, path: str, spill: SpillPlace | None) -> tuple[str, Callable[[], None]]:
    """The path of a local file with the bytes of `source`, and what releases both.

    Cost: nothing for a file on local disk; others are copied, once for each time that they are opened.
    """
    if isinstance(source, pa.OSFile):
        return path.removeprefix("file://").removeprefix("file:"), source.close
    copy = (spill or SPILL).create()

    def release() -> None:
        copy.delete()
        source.close()

    try:
        with copy.open_write() as sink:
            while data := source.read(_COPY_BYTES):
                sink.write(data)
    except BaseException as error:
        copy.delete()
        if not isinstance(error, OSError):
            raise
        raise full_disk(copy.path, error, f"{path} could not be copied to ") from error
    return copy.path, release


def full_disk(copy: str, error: OSError, action: str = "writing ") -> StorageError:
    """The error for a file on local disk that cannot be written. `action`: the first words of its message."""
    return StorageError(
        f"{action}{copy}: {error}. Point TMPDIR at a directory with more space",
        path=copy, operation="spill", transient=False,
    )  # fmt: skip
