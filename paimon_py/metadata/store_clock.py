"""The clock of a store: the one by which the ages of its files are counted.

The store says when a file was written. Before a file is deleted for its age, "now" has to come from the same clock: to
a machine whose clock is ahead, files of this minute look old.

Source: docs/reliability.md §3 (i).
"""

from __future__ import annotations

from paimon_py.metadata.root import TableRoot
from paimon_py.spec.layout import join, manifest_directory


def store_lag(root: TableRoot) -> int | None:
    """How far the clock of a table's store is behind this machine's, in milliseconds: its files look that much older.

    Ask only once something looks old by this machine's clock, and take the lag off "now" then. It is never too small,
    so that nothing is taken for older than it is. A machine whose clock is behind has no lag: it keeps files longer.

    Returns: None if the store does not say when files were written; then no age is known.
    Cost: a put, a stat and a delete.
    """
    path = join(manifest_directory(root.path), f".clock.{root.env.ids.uuid()}.tmp")
    root.store.put(path, b"", within=root.path)
    status = root.store.stat(path)
    root.store.delete(path)
    if status is None or status.modified_millis is None:
        return None
    return max(0, root.env.clock.millis() - status.modified_millis)
