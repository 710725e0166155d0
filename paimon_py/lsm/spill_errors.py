"""Reports a full or broken local disk as an error of paimon_py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from paimon_py.errors import StorageError


@contextmanager
def spilling(what: str, path: str, *kinds: type[Exception], otherwise: str = "") -> Iterator[None]:
    """Convert errors of these kinds to "`what` could not be spilled"; `otherwise`: a remedy other than more room.

    Raises: StorageError
    """
    try:
        yield
    except kinds as error:
        raise StorageError(
            f"{what} could not be spilled to {path}: {error}. Point TMPDIR at a directory with more space{otherwise}",
            path=path,
            operation="spill",
            transient=False,
        ) from error
