"""A clone that is being made: files below the directory of a table that does not exist until its schemas do.

The file `clone/plan.json` is created first, so that one call at a time fills the directory. A call with the same
contents takes over a clone that was interrupted. Data files, manifests, tags and snapshots come next. The schemas make
the directory a table, and come last, all together where the store can rename a directory. Other stores get them one by
one, the newest first: a reader in between may lack the schema of an older file, and fails.

A call that failed deletes its files only if no other call publishes them: it creates `clone/discarded`, and then reads
whose plan it is; a call that takes over writes its plan, and later looks for `clone/discarded` before it publishes. So
at least one of the two sees the other.

Source: docs/decisions/0033-clones.md.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import msgspec

from paimon_py.arguments import decoding_metadata
from paimon_py.clones.contents import CloneFile, Contents
from paimon_py.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CorruptionError,
    PaimonError,
    StorageError,
    UnsupportedError,
)
from paimon_py.metadata.root import TableRoot
from paimon_py.metadata.user_files import user_file_data
from paimon_py.progress import Progress, ProgressCounter
from paimon_py.spec.layout import CLONE_DIRECTORY, join, manifest_path, schema_directory, schema_path
from paimon_py.spec.snapshot import Base, Snapshot
from paimon_py.storage.store import FileMissingError, FileStatus, FileTakenError, new_file

_CHUNK_BYTES = 8 << 20


class ClonePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `clone/plan.json`.

    Attributes:
        owner: an id of the call that fills the directory.
        source: location of the table that is cloned.
        snapshot_id: the newest snapshot of the clone, 0 without one.
        digest: `Contents.digest` of the clone.
    """

    owner: str
    source: str
    snapshot_id: int
    digest: str


class UnfinishedClone:
    """Fills the directory of a new table, and publishes it; `begin_clone` creates it."""

    def __init__(
        self, source: TableRoot, target: TableRoot, contents: Contents, plan: ClonePlan, *, is_resumed: bool
    ) -> None:
        """`is_resumed`: another call began the clone."""
        self._source = source
        self._target = target
        self._contents = contents
        self._plan = plan
        self._is_resumed = is_resumed
        self._staged = join(target.path, CLONE_DIRECTORY, "schema")

    def copy(self, progress: Progress | None) -> None:
        """Copy all files, except schemas. Files that an interrupted call copied are kept.

        Names of data files and manifests are unique, those of users, tags and snapshots are not: the plan is read
        again before each of these.

        Raises:
            AlreadyExistsError: another table was created at the location.
            CommitConflictError: another call took over the clone, or it was dropped.
            SnapshotExpiredError, CorruptionError: a file of the source is missing (any more).
            StorageError
        """
        files, target = self._contents.files, self._target
        tally = ProgressCounter(progress, len(files), "files")
        there = self._files_there()
        for _ in target.env.io.map(lambda file: self._copy(file, there), files):
            tally.add(1)
        if self._is_taken():
            raise self._taken_error()
        for path, data, snapshot in self._states():
            self._require_own()
            is_new = target.store.put_new(path, data, within=target.path)
            if not is_new and target.store.get(path) != data:
                raise self._taken_error()
            if not self._is_own():
                if is_new:
                    self._withdraw_state(path, data, snapshot)
                self._require_own()

    def publish(self) -> bool:
        """Publish the schemas, unless they are published; the table exists then. False if another table was created.

        Raises: CommitConflictError if another call took over the clone; StorageError.
        """
        store = self._target.store
        schemas = self._contents.schemas
        is_published = all(map(self._has_schema, schemas))
        self._require_own()
        if store.stat(_discarded_path(self._target)) is not None:
            raise self._lost_error()
        if is_published:
            return True
        if self._is_taken():
            return False
        at_once = self._publish_at_once() if len(schemas) > 1 and not self._has_schema(schemas[-1]) else None
        is_done = self._publish_one_by_one() if at_once is None else at_once and all(map(self._has_schema, schemas))
        if is_done:
            self._require_own()  # else the schemas are those of another clone
        return is_done

    def _publish_one_by_one(self) -> bool:
        """Publish the schemas, the newest first. False if another table is there now."""
        self._require_own()
        for number, data in reversed(self._contents.schemas):
            is_new = self._target.store.put_new(schema_path(self._target.path, number), data)
            if not is_new and not self._has_schema((number, data)):
                self._withdraw()
                return False
        return True

    def finish(self) -> None:
        """Delete the plan of a clone that is published; what cannot be deleted remains, and has no effect."""
        with contextlib.suppress(StorageError):
            self._target.store.delete_tree(join(self._target.path, CLONE_DIRECTORY))

    def discard(self) -> None:
        """Delete what was copied, unless another call took over.

        If the store fails, the remains stay, and `drop_table` deletes them.
        """
        store, path = self._target.store, self._target.path
        if self._is_resumed:  # the call that began may still work, and relies on the files
            return
        with contextlib.suppress(PaimonError):
            if not self._is_own():
                return
            is_first = store.put_new(_discarded_path(self._target), b"", within=path)
            if not is_first or not self._is_own() or self._has_schema(self._contents.schemas[-1]):
                return
            for state, data in reversed(tuple(self._contents.states(path))):
                with contextlib.suppress(FileMissingError):
                    if store.get(state) == data:
                        store.delete(state)
            for user in self._contents.users:
                self._target.users.delete(user.user)
            for file in self._contents.files:
                store.delete(join(path, file.below))
            store.delete_tree(join(path, CLONE_DIRECTORY))
            self._remove_directories()

    # -- steps ------------------------------------------------------------------------------------------------------

    def _copy(self, file: CloneFile, there: dict[str, FileStatus]) -> None:
        target, store = join(self._target.path, file.below), self._target.store
        found = there.get(target)
        if found is not None:
            size = file.size_bytes
            if size is None:
                status = self._source.store.stat(file.source)
                size = None if status is None else status.size_bytes
            if found.size_bytes == size:
                return
            store.delete(target)
        try:
            self._copy_bytes(file, target)
        except FileMissingError as error:
            newest = self._contents.newest
            if newest is None or error.path != file.source:
                raise
            raise self._source.missing(Base.of(newest), error) from error
        except FileTakenError as error:
            raise CommitConflictError(f"another call copies the same files: {error}", path=target) from error

    def _copy_bytes(self, file: CloneFile, target: str) -> None:
        size = 0
        with (
            self._source.store.open_read(file.source) as stream,
            new_file(self._target.store, target, within=self._target.path) as sink,
        ):
            while chunk := stream.read(_CHUNK_BYTES):
                sink.write(chunk)
                size += len(chunk)
            if file.size_bytes is not None and size != file.size_bytes:
                message = f"{file.source} has {size} bytes, its manifest says {file.size_bytes}"
                raise CorruptionError(message, path=file.source)

    def _files_there(self) -> dict[str, FileStatus]:
        """The files of an interrupted call, by path. Cost: one list per directory; for a new clone none exist."""
        directories = sorted({join(self._target.path, file.below).rpartition("/")[0] for file in self._contents.files})
        listed = self._target.env.io.map(self._target.store.list, directories)
        return {status.path: status for found in listed for status in found if not status.is_directory}

    def _publish_at_once(self) -> bool | None:
        """Publish several schemas in one step. False if another table is there now; None if the store cannot do it."""
        store, path = self._target.store, self._target.path
        for number, data in self._contents.schemas:
            store.put(join(self._staged, f"schema-{number}"), data, within=path)
        self._require_own()
        try:
            store.rename_directory(self._staged, schema_directory(path))
        except AlreadyExistsError:
            return self._has_schema(self._contents.schemas[-1])
        except UnsupportedError:
            return None
        return True

    def _states(self) -> Iterator[tuple[str, bytes, Snapshot]]:
        """The files of users, tags and snapshots: path, content, and a snapshot that they need."""
        contents, target = self._contents, self._target
        if contents.newest is None:
            return
        for user in contents.users:
            yield target.users.path_of(user.user), user_file_data(user), contents.newest
        needed = (*(tag.snapshot for tag in contents.tags), *contents.snapshots)
        for (path, data), snapshot in zip(contents.states(target.path), needed, strict=True):
            yield path, data, snapshot

    def _withdraw_state(self, path: str, data: bytes, snapshot: Snapshot) -> None:
        """Delete a file that was written while another table came to the directory, unless it is one of that.

        A clone of the same source has the same files: then it has the manifests of the snapshot, too.
        """
        store, manifests = self._target.store, manifest_path(self._target.path, snapshot.delta_manifest_list)
        with contextlib.suppress(FileMissingError):
            if store.stat(manifests) is None and store.get(path) == data:
                store.delete(path)

    def _withdraw(self) -> None:
        """Delete the schemas of the clone, since another table has others."""
        for schema in self._contents.schemas:
            if self._has_schema(schema):
                self._target.store.delete(schema_path(self._target.path, schema[0]))

    def _has_schema(self, schema: tuple[int, bytes]) -> bool:
        """Whether a schema of the clone is published."""
        number, data = schema
        try:
            return self._target.store.get(schema_path(self._target.path, number)) == data
        except FileMissingError:
            return False

    def _is_taken(self) -> bool:
        """Whether there is another table; a clone that is being published has its newest schema."""
        return bool(self._target.schemas.ids()) and not self._has_schema(self._contents.schemas[-1])

    def _is_own(self) -> bool:
        return find_plan(self._target) == self._plan

    def _require_own(self) -> None:
        """Check that this call still fills the directory. Cost: a get.

        Raises: AlreadyExistsError: another table is there; CommitConflictError
        """
        if not self._is_own():
            if self._is_taken():
                raise self._taken_error()
            raise self._lost_error()

    def _lost_error(self) -> CommitConflictError:
        path = self._target.path
        return CommitConflictError(f"another call has taken over the clone at {path}", path=path)

    def _taken_error(self) -> AlreadyExistsError:
        path = self._target.path
        return AlreadyExistsError(f"another table was created at {path} while the clone was copied", path=path)

    def _remove_directories(self) -> None:
        """Remove the empty directories of the clone."""
        path = self._target.path
        below = [file.below for file in self._contents.files]
        below += [state.removeprefix(f"{path}/") for state, _ in self._contents.states(path)] + ["user/x", "schema/x"]
        parts = {name[:end] for name in below for end in range(len(name)) if name[end] == "/"}
        for part in sorted(parts, key=len, reverse=True):
            self._target.store.remove_directory(join(path, part))
        self._target.store.remove_directory(path)


def begin_clone(source: TableRoot, target: TableRoot, contents: Contents) -> UnfinishedClone:
    """Reserve the directory of a new table, or take over a clone that was interrupted.

    Cost: a get, three lists and a conditional put.
    Raises: AlreadyExistsError if a table, its remains or another clone is there.
    """
    newest = 0 if contents.newest is None else contents.newest.id
    plan = ClonePlan(
        owner=target.env.ids.uuid(), source=source.path, snapshot_id=newest, digest=contents.digest()
    )  # fmt: skip
    path, data = _plan_path(target), msgspec.json.encode(plan)
    there = find_plan(target)
    if there is None:
        if target.schemas.ids():
            raise AlreadyExistsError(f"there is a table at {target.path}", path=target.path)
        if any(status.name != CLONE_DIRECTORY for status in target.store.list(target.path)):
            message = f"{target.path} contains the remains of an interrupted drop; drop_table removes them"
            raise AlreadyExistsError(message, path=target.path)
        if target.store.put_new(path, data):
            work = UnfinishedClone(source, target, contents, plan, is_resumed=False)
            if target.schemas.ids():  # of a table that was created in the meantime
                work.finish()
                raise AlreadyExistsError(f"there is a table at {target.path}", path=target.path)
            return work
        there = find_plan(target)
    if there is None or there.digest != plan.digest or target.store.stat(_discarded_path(target)) is not None:
        raise AlreadyExistsError(
            f"{target.path} contains an unfinished clone of {_text(there)}: call clone_table with the same arguments"
            f" and that snapshot_id to finish it, or drop_table to delete it",
            path=target.path,
        )
    target.store.put(path, data, within=target.path)
    return UnfinishedClone(source, target, contents, plan, is_resumed=True)


def find_plan(table: TableRoot) -> ClonePlan | None:
    """The plan of an unfinished clone in the directory of a table, None if there is none. Cost: one get."""
    path = _plan_path(table)
    try:
        data = table.store.get(path)
    except FileMissingError:
        return None
    with decoding_metadata(path):
        return msgspec.json.decode(data, type=ClonePlan)


def _text(plan: ClonePlan | None) -> str:
    return "another table" if plan is None else f"{plan.source}, snapshot {plan.snapshot_id}"


def _plan_path(table: TableRoot) -> str:
    return join(table.path, CLONE_DIRECTORY, "plan.json")


def _discarded_path(table: TableRoot) -> str:
    return join(table.path, CLONE_DIRECTORY, "discarded")
