"""A cut of a history: a rollback or a fast-forward in progress, recorded in a file next to the tags.

A cut deletes the newest snapshots and may put others in their place. That takes many calls, and a process may end
between two of them. So the file first records the planned result, and is deleted last. While the file exists, all verbs
that change the table are refused by name, and the same verb, called again, completes the cut. The snapshots in the file
are protected like those of tags: expiry lists the directory of tags, on whatever branch it works.

During a cut there is no LATEST hint, so that a reader lists the snapshots, and a writer checks for the file
only then. Java ignores the file.

Source: docs/reliability.md §3 (o).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from paimon_py.arguments import decoding_metadata
from paimon_py.codec.json import decode_object, pretty
from paimon_py.codec.snapshot_json import snapshot_from_json, snapshot_to_json
from paimon_py.errors import CommitConflictError, CorruptionError, StorageUnknownError
from paimon_py.spec.layout import cut_path
from paimon_py.spec.snapshot import Snapshot
from paimon_py.storage.store import DeleteFile, FileMissingError, Get, Put, PutNew, Stat

ROLLBACK = "rollback_to"
FAST_FORWARD = "fast_forward"


class CutStore(Get, Put, PutNew, Stat, DeleteFile, Protocol):
    """The store operations that this module uses."""


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """A rollback or fast-forward.

    Attributes:
        owner: the call that works on it; a later call that takes it over writes its own.
        verb: ROLLBACK or FAST_FORWARD.
        branch: the branch that a fast-forward moves to; "" for a rollback.
        snapshots: the end of the history after the cut, ascending: the target of a rollback, or the snapshots
            of the branch that the table lacks.
    """

    owner: str
    verb: str
    branch: str = ""
    snapshots: tuple[Snapshot, ...]

    @property
    def call(self) -> str:
        """The call that completes the cut."""
        if self.verb == FAST_FORWARD:
            return f"table.{self.verb}({self.branch!r}, discard=True)"
        return f"table.{self.verb}({self.snapshots[-1].id})"


class Cuts:
    """The cut of one table directory (or branch directory)."""

    __slots__ = ("_path", "_store")

    def __init__(self, store: CutStore, path: str) -> None:
        self._store = store
        self._path = path

    def exists(self) -> bool:
        """Whether a cut is in progress, or was interrupted. Cost: one stat."""
        return self._store.stat(cut_path(self._path)) is not None

    def find(self) -> Cut | None:
        """The cut that is in progress, or was interrupted. Cost: one get.

        Raises: CorruptionError if the file is damaged.
        """
        path = cut_path(self._path)
        try:
            data = self._store.get(path)
        except FileMissingError:
            return None
        with decoding_metadata(path):
            return _decode(decode_object(data, path), path)

    def refuse(self) -> None:
        """Refuse to change a table whose history is being cut. Cost: one get.

        Raises: CommitConflictError
        """
        found = self.find()
        if found is not None:
            raise self.error(found)

    def error(self, cut: Cut) -> CommitConflictError:
        """The error for a verb that finds a cut."""
        return CommitConflictError(
            f"nothing was done: {cut.verb} is in progress on {self._path}, or its process ended before it was done. If"
            f" no process is working on it, {cut.call} completes it",
            path=cut_path(self._path),
            table=self._path,
        )

    def begin(self, cut: Cut, *, takes_over: bool) -> None:
        """Write the file, over the one that another call left if it is to be taken over.

        Raises: CommitConflictError if another call was faster.
        """
        path, data = cut_path(self._path), _encode(cut)
        if takes_over:
            self._store.put(path, data, within=self._path)
            return
        try:
            is_ours = self._store.put_new(path, data, within=self._path)
        except StorageUnknownError:
            is_ours = False
        if not is_ours:
            found = self.find()
            if found is None or found.owner != cut.owner:
                raise self.error(found or cut)

    def check(self, cut: Cut) -> None:
        """Check that no other call has taken the cut over. Cost: one get.

        Raises: CommitConflictError
        """
        found = self.find()
        if found is not None and found.owner == cut.owner:
            return
        if found is None:
            text = f"a rollback or fast-forward of another process on {self._path} ended in the meantime: this call"
            text += " stops. Call it again if the latest snapshot is not the one that it should leave"
        else:
            text = f"{found.verb} of another process took over on {self._path}: this call stops. If the other one does"
            text += f" not complete the work, {found.call} does"
        raise CommitConflictError(text, path=cut_path(self._path), table=self._path)

    def end(self) -> None:
        """Delete the file when the cut is complete."""
        self._store.delete(cut_path(self._path))


def _encode(cut: Cut) -> bytes:
    return pretty({
        "owner": cut.owner, "verb": cut.verb, "branch": cut.branch,
        "snapshots": [snapshot_to_json(one).decode() for one in cut.snapshots],
    })  # fmt: skip


def _decode(data: Mapping[str, object], path: str) -> Cut:
    texts, snapshots = [data.get(name) for name in ("owner", "verb", "branch")], data.get("snapshots")
    owner, verb, branch = (text if isinstance(text, str) else "" for text in texts)
    if verb not in (ROLLBACK, FAST_FORWARD) or not isinstance(snapshots, list) or not snapshots:
        raise CorruptionError(
            f"{path} is damaged: it records an interrupted rollback or fast-forward. Call rollback_to with a"
            " snapshot or tag that exists",
            path=path,
        )
    found = tuple(snapshot_from_json(str(text).encode(), path) for text in snapshots)
    return Cut(owner=owner, verb=verb, branch=branch, snapshots=found)
