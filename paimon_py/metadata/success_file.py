"""Success files: record that something is complete, and since when.

Source: Java `SuccessFile`.
"""

from __future__ import annotations

from paimon_py.arguments import decoding_metadata
from paimon_py.codec.json import decode_object, pretty
from paimon_py.errors import CorruptionError
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.bounds import is_long
from paimon_py.storage.store import FileMissingError

_CREATED, _MODIFIED = "creationTime", "modificationTime"


def mark_success(root: TableRoot, path: str) -> None:
    """Write the file at a path below a table; an existing file gets a new time. Cost: a get and a put.

    Raises:
        CorruptionError: a file with this name contains something else.
        TableNotFoundError: the table was renamed or dropped.
        StorageError: the call may be repeated.
    """
    now = root.env.clock.millis()
    created = _creation_millis(root, path)
    data = pretty({_CREATED: now if created is None else created, _MODIFIED: now})
    try:
        root.store.put(path, data, within=root.path)
    except FileMissingError:
        root.schemas.latest()
        raise


def _creation_millis(root: TableRoot, path: str) -> int | None:
    """The time when the file was first written; None if it never was."""
    try:
        data = root.store.get(path)
    except FileMissingError:
        return None
    with decoding_metadata(path):
        found = decode_object(data, path).get(_CREATED)
        if not isinstance(found, int) or not is_long(found):
            raise CorruptionError(
                f"{path} contains {_CREATED} = {found!r}, which is not a time; delete the file",
                path=path,
            )
        return found
