"""The clock of a store, by which the ages of its files are measured.

The store reports when a file was written. Before a file is deleted for its age, "now" must come from the same clock: to
a machine whose clock is ahead, new files look old.

Source: docs/reliability.md §3 (i).
"""

from __future__ import annotations

from paimon_py.errors import StorageError
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.layout import join, manifest_directory
from paimon_py.storage.store import FileMissingError


def store_lag(root: TableRoot) -> int | None:
    """The lag of the clock of a table's store behind this machine's, in milliseconds: files look that much older.

    Call this only once something looks old by this machine's clock, and subtract the lag from "now". It is never too
    small, so nothing looks older than it is. A machine whose clock is behind has no lag: it keeps files longer.

    Returns: None if the store does not report write times; then no age is known.
    Cost: a put, a stat and a delete.
    Raises: StorageError; it says why if the table is read only.
    """
    path = join(manifest_directory(root.path), f".clock.{root.env.ids.uuid()}.tmp")
    try:
        root.store.put(path, b"", within=root.path)
    except FileMissingError:
        raise
    except StorageError as error:
        raise StorageError(
            f"{root.path} cannot be written, and deleting files by their age needs the clock of the store, which a new"
            f" file there shows: {error}", path=root.path, operation=error.operation, transient=error.transient,
        ) from error  # fmt: skip
    status = root.store.stat(path)
    root.store.delete(path)
    if status is None or status.modified_millis is None:
        return None
    return max(0, root.env.clock.millis() - status.modified_millis)
