"""Fast-forward: moves the main branch to the state of another branch.

Main keeps exactly the snapshots that the branch descends from. Its other snapshots are deleted only on request.

Source: format.md §15.5; docs/reliability.md §3 (o); Java `FileSystemBranchManager.fastForward`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import msgspec

from paimon_py.codec.json import schema_from_json
from paimon_py.errors import CommitConflictError, SnapshotExpiredError, UsageError
from paimon_py.logs import COMMITS, fields, warn
from paimon_py.maintain.cleanup.expired import FastForwarded
from paimon_py.maintain.cutting import (
    HistoryCut,
    NewerSnapshotsError,
    ancestors,
    check_no_expiry,
    delete_tags_beyond,
)
from paimon_py.maintain.rollback import consumers_beyond, warn_of_consumers
from paimon_py.metadata.ancestry import is_built_on
from paimon_py.metadata.branches import check_new_branch, require_branch
from paimon_py.metadata.catalog_entry import partition_catalog
from paimon_py.metadata.cuts import FAST_FORWARD
from paimon_py.metadata.id_runs import current_run, shown_ids
from paimon_py.metadata.origins import BranchOrigin, origin_of
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.events import RollbackEvent
from paimon_py.spec.layout import MAIN_BRANCH, schema_path, tag_path
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Base, Snapshot, TagValue
from paimon_py.storage.store import FileMissingError


class ForkPoint(msgspec.Struct, frozen=True, kw_only=True):
    """The fork point of a branch and main.

    Attributes:
        kept: the newest snapshot of main that is kept, with its ancestors; None: none is kept.
        last_shared: the newest snapshot that the branch descends from, 0 for none: `kept`, or one whose successors have
            expired in the branch.
        newer: the snapshots of main that the branch does not descend from, ascending.
    """

    kept: Snapshot | None
    last_shared: int
    newer: tuple[int, ...]


def fast_forward(root: TableRoot, name: str, *, discard: bool) -> FastForwarded:
    """Move main to the state of a branch.

    Snapshots of main that the branch does not descend from are deleted newest first, then those of the branch are
    written, oldest first. Readers always find one of the two states. An interrupted call has to be repeated; other
    calls refuse until then. A warning names consumers that have read deleted snapshots.

    Args:
        discard: delete what main has and the branch does not descend from: snapshots, tags, schema changes.

    Cost: some lists of each side, a get per snapshot and tag, a get and a delete per deleted snapshot, a put per new
      one.
    Raises:
        BranchNotFoundError
        UsageError: the branch has no snapshot, or this is not main.
        CommitConflictError: main has commits that the branch does not descend from; or a rollback, an expiry or another
            fast-forward is in progress. Nothing was done.
        SnapshotExpiredError: snapshots of the branch expired, or it is being deleted; nothing was done.
        StorageError: the store failed; call again.
    """
    if root.branch != MAIN_BRANCH:
        raise UsageError(f"main can be fast-forwarded, not the branch {root.branch!r}: call it on the table itself")
    branch = require_branch(root, check_new_branch(name))
    if not branch.snapshots.ids():
        require_branch(root, name)  # another process may be deleting it
        raise UsageError(f"branch {name!r} of {root.path} has no snapshot: main cannot be fast-forwarded to it")
    branch.cuts.refuse()
    move = _Move(root, branch)
    if not discard:
        move.require_nothing_newer()
    consumers = consumers_beyond(root, move.fork_point.last_shared + 1) if move.fork_point.newer else ()
    left_behind = move.left_behind()
    done = move.by_catalog() if root.history is not None else move.run(discard=discard)
    done = msgspec.structs.replace(done, consumers=tuple(sorted({*consumers, *left_behind})))
    COMMITS.info(
        "%s: moved on to branch %s, snapshot %d", root.path, name, done.snapshot_id,
        extra=fields(root, from_branch=name, snapshot_id=done.snapshot_id),
    )  # fmt: skip
    warn_of_consumers(root, consumers, move.fork_point.last_shared + 1)
    if left_behind:
        warn(
            f"{root.path}: consumers had not read snapshots that are deleted now, since the branch {name!r} has expired"
            f" their successors: {', '.join(map(repr, left_behind))}. Their streams are refused until"
            f" table.reset_consumer({left_behind[0]!r}, …) says where they continue"
        )
    return done


def fast_forward_event(root: TableRoot, done: FastForwarded) -> RollbackEvent:
    """The event of a fast-forward for observers."""
    return RollbackEvent(
        **root.event_place(), action="fast-forward", snapshot_id=done.snapshot_id, deleted_ids=done.gone_ids,
        deleted_tags=done.tags, consumers=done.consumers,
    )  # fmt: skip


def find_fork_point(
    root: TableRoot, there: Mapping[int, Snapshot], coming: Mapping[int, Snapshot], origin: BranchOrigin | None
) -> ForkPoint:
    """The fork point of a branch and main.

    Args:
        there: the snapshots of main by id; `coming`: those of the branch.
        origin: the start of the branch, None if unknown.

    Cost: none; two lists for a snapshot of another writer.
    """
    shared = [number for number, one in there.items() if number in coming and coming[number].mark == one.mark]
    first = coming[min(coming)]
    parent = there.get(first.id - 1)
    if not shared and parent is not None and is_built_on(root.manifests, first, parent):
        shared = [parent.id]
    if shared:
        last = max(shared)
        return ForkPoint(kept=there[last], last_shared=last, newer=tuple(n for n in sorted(there) if n > last))
    known = [number for number, one in there.items() if origin is not None and origin.knows(one)]
    last = max(known, default=0)
    return ForkPoint(kept=None, last_shared=last, newer=tuple(number for number in sorted(there) if number > last))


class _Move:
    """One fast-forward: the state of both sides, and the planned changes."""

    def __init__(self, root: TableRoot, branch: TableRoot) -> None:
        self._root = root
        self._branch = branch
        self._found = {one.id: one for number in branch.snapshots.ids() if (one := branch.snapshots.find(number))}
        if not self._found:
            raise self._expired_error()
        history = current_run(sorted(self._found), lambda: None)
        self._coming = {number: self._found[number] for number in history}
        self._schemas = _MovedSchemas(root, self._schemas_of_branch())
        self._branch_tags = branch.tags.list()
        self._look_at_main()

    def _look_at_main(self) -> None:
        """Read what main has, and what has to be deleted."""
        root = self._root
        self._there = {one.id: one for number in root.snapshots.ids() if (one := root.snapshots.find(number))}
        self._origin = origin_of(self._branch)
        self.fork_point = find_fork_point(root, self._there, self._all(), self._origin)
        self.tags = self._leaving_tags(root.tags.list())

    def _is_as_before(self, ids: Sequence[int]) -> bool:
        """Whether main still has the same snapshots. Cost: a get."""
        latest = self._there.get(max(self._there, default=0))
        return list(ids) == sorted(self._there) and (
            latest is None or Base.of(latest).is_of(self._root.snapshots.find(latest.id))
        )

    def _all(self) -> dict[int, Snapshot]:
        """The snapshots to add, including those that an interrupted call has kept and the branch has expired since."""
        cut = None if self._root.history is not None else self._root.cuts.find()
        held = cut.snapshots if cut is not None and cut.branch == self._branch.branch else ()
        return dict(sorted({**{one.id: one for one in held}, **self._coming}.items()))

    def require_nothing_newer(self) -> None:
        """Check that main has nothing that the branch does not descend from.

        Raises: CommitConflictError
        """
        newer, schemas = self.fork_point.newer, self._schemas.newer()
        parts = [shown_ids("snapshot", newer)] if newer else []
        parts += [f"the tags {', '.join(map(repr, self.tags))}"] if self.tags else []
        parts += [shown_ids("schema", schemas)] if schemas else []
        if parts:
            name = self._branch.branch
            raise CommitConflictError(
                f"nothing was done: {self._root.path} has {' and '.join(parts)}, which the branch {name!r} does not"
                f" build on: fast_forward({name!r}, discard=True) discards them. To keep them, write what the branch"
                " changed to the table itself",
                table=self._root.path,
            )
        left_behind = self.left_behind()
        if left_behind:
            name, consumer = self._branch.branch, left_behind[0]
            raise CommitConflictError(
                f"nothing was done: consumers of {self._root.path} have not read snapshots whose successors have"
                f" expired in the branch {name!r}, and would never read them: {', '.join(map(repr, left_behind))}."
                f" delete_consumer({consumer!r}) or fast_forward({name!r}, discard=True) skips these changes",
                table=self._root.path,
            )

    def left_behind(self) -> tuple[str, ...]:
        """Names of the consumers whose next snapshots or changelogs go: main keeps none that the branch, without those
        that it has expired, follows.

        Cost: none if main keeps snapshots; otherwise two lists, and a get per consumer.
        """
        if self.fork_point.kept is not None or not self._there:
            return ()
        wanted = range(min((*self._there, *self._root.changelogs.ids())), min(self._all()))
        return tuple(one.name for one in self._root.consumers.all() if one.next_snapshot_id in wanted)

    def run(self, *, discard: bool) -> FastForwarded:
        """Move main. Without `discard`, a concurrent commit to main is kept, and nothing is done."""
        root, coming = self._root, list(self._all().values())
        cutting = HistoryCut(root, FAST_FORWARD, coming, self._branch.branch)
        cutting.begin(lambda: self._check_again(cutting, discard=discard))
        kept = self.fork_point.kept
        coming = [one for one in coming if kept is None or one.id > kept.id]
        stays = frozenset() if kept is None else frozenset((kept.id, *(one.id for one in ancestors(root, kept))))
        new_schemas = [number for number in self._schemas.found if number not in root.schemas.ids()]
        last = coming[-1] if coming else kept
        assert last is not None
        try:
            if coming:
                self._schemas.put(new_schemas, cutting, discard=discard)
            if coming and not discard:
                cutting.claim(self._there.get(max(self._there, default=0)), coming[0])
            cutting.replace(
                stays, coming or [last], known=None if discard else frozenset(self._there),
                between=lambda: self._schemas.move(cutting, discard=discard),
            )  # fmt: skip
        except NewerSnapshotsError as error:
            raise self._overtaken(cutting, new_schemas, error) from error
        changelogs = [number for number in root.changelogs.ids() if kept is None or number > kept.id]
        root.changelogs.cut(changelogs, cutting.check)
        self._move_tags(cutting)
        if not coming:
            self._schemas.continue_latest(cutting, discard=discard)
        root.schemas.forget()
        cutting.forget_numbers(last)
        cutting.check()
        for value in self._branch.users.all():
            root.users.put(value)
        cutting.end()
        root.maintenance.forget()
        return self._result(last.id, set(root.snapshots.ids()), cutting.gone)

    def by_catalog(self) -> FastForwarded:
        """Let the catalog move main if it manages the history."""
        assert self._root.history is not None
        self._root.history.fast_forward(self._branch.branch)
        self._root.schemas.forget()
        return self._result(max(self._coming), set(self._coming), set())

    def _result(self, latest: int, left: set[int], deleted: set[int]) -> FastForwarded:
        before = {number: one.mark for number, one in self._there.items()}
        all_coming = self._all()
        same = {number for number, mark in before.items() if number in all_coming and all_coming[number].mark == mark}
        stays = {number for number in before if self.fork_point.kept is not None and number <= self.fork_point.kept.id}
        return FastForwarded(
            snapshot_id=latest,
            gone_ids=tuple(sorted(deleted.union(before) - same - (stays & left))),
            new_ids=tuple(number for number in all_coming if number not in same),
            tags=tuple(self.tags),
        )

    def _check_again(self, cutting: HistoryCut, *, discard: bool) -> None:
        """Check that what this call needs is still there, and that no expiry is processing it. Raises: as `run`"""
        self._look_again(discard=discard)
        kept = self.fork_point.kept
        if kept is not None and not cutting.holds(kept):
            check_no_expiry(self._root, kept.id)

    def _look_again(self, *, discard: bool) -> None:
        """Check that the branch still exists, now that the cut protects its files, and that main has not changed.

        Raises:
            BranchNotFoundError, SnapshotExpiredError
            CommitConflictError: the schemas of the branch changed; or other writers committed to main.
        """
        if not set(self._coming) <= set(self._branch.snapshots.ids()):
            raise self._expired_error()
        if self._schemas_of_branch() != self._schemas.found:
            raise CommitConflictError(
                f"nothing was done: the schema of branch {self._branch.branch!r} changed in the meantime; call again",
                table=self._root.path,
            )
        ids = self._root.snapshots.ids()
        new = [number for number in ids if number not in self._there and not self._has_moved(number)]
        if new and not discard:
            raise self._moved_on(NewerSnapshotsError(self._root.path, new))
        if not self._is_as_before(ids):  # a rollback, or an expiry
            self._look_at_main()
            if not discard:
                self.require_nothing_newer()

    def _has_moved(self, number: int) -> bool:
        """Whether a snapshot of main is one of the branch: another call has begun the same."""
        coming = self._all().get(number)
        return coming is not None and Base.of(coming).is_of(self._root.snapshots.find(number))

    def _overtaken(
        self, cutting: HistoryCut, schemas: Sequence[int], error: NewerSnapshotsError
    ) -> CommitConflictError:
        """Withdraw the cut after concurrent commits to main; returns the error."""
        if not cutting.withdraw():
            name = self._branch.branch
            return CommitConflictError(
                f"{error}; the call had already begun: fast_forward({name!r}, discard=True) finishes it and discards"
                " them",
                table=self._root.path,
            )
        for number in schemas:
            with suppress(FileMissingError):
                path = schema_path(self._root.branch_path, number)
                if self._root.store.get(path) == self._schemas.found[number]:
                    self._root.store.delete(path)
        self._root.schemas.forget()
        return self._moved_on(error)

    def _moved_on(self, error: NewerSnapshotsError) -> CommitConflictError:
        name = self._branch.branch
        return CommitConflictError(
            f"nothing was done: {error}, which the branch {name!r} does not build on: fast_forward({name!r},"
            " discard=True) discards them",
            table=self._root.path,
        )

    def _schemas_of_branch(self) -> dict[int, bytes]:
        store, home = self._branch.store, self._branch.branch_path
        try:
            found = {number: store.get(schema_path(home, number)) for number in self._branch.schemas.ids()}
        except FileMissingError as error:
            raise self._expired_error() from error
        require_branch(self._root, self._branch.branch)  # no schemas are none that are needed: others delete it
        return found

    def _expired_error(self) -> SnapshotExpiredError:
        return SnapshotExpiredError(
            f"branch {self._branch.branch!r} of {self._root.path} expired snapshots in the meantime; call again",
            path=self._branch.branch_path,
        )

    # -- tags ---------------------------------------------------------------------------------------------------------

    def _leaving_tags(self, tags: list[TagValue]) -> list[str]:
        """The tags of main that reference snapshots that the branch does not descend from.

        After an interrupted call, main may already contain snapshots of the branch: tags with the same ids but other
        snapshots were to be deleted.
        """
        coming, last, marks = self._all(), self.fork_point.last_shared, self._coming_marks()
        is_resumed = self._root.history is None and self._root.cuts.exists()
        taken = set(coming) if is_resumed else set()
        leaving = [tag for tag in tags if tag.snapshot.id > last or tag.snapshot.id in taken]
        return [tag.name for tag in leaving if tag.snapshot.mark not in marks]

    def _coming_marks(self) -> set[str]:
        """The marks of the new snapshots, of those that tags of the branch reference, and of all from which the branch
        is known to descend, whether main still has them or not.
        """
        older = () if self._origin is None else self._origin.ancestors
        parents = {base.mark for base in (*older, *(one.parent for one in self._all().values())) if base is not None}
        named = {one.mark for one in (*self._all().values(), *(tag.snapshot for tag in self._branch_tags))}
        return named | {mark for mark in parents if mark is not None}

    def _move_tags(self, cutting: HistoryCut) -> None:
        """Delete tags of main, and copy those of the branch; an existing name on main is kept."""
        root, keeper = self._root, partition_catalog(self._root)
        gone = delete_tags_beyond(cutting, root, self.tags, self.fork_point.last_shared, self._coming_marks())
        self.tags = [*self.tags, *sorted(set(gone) - set(self.tags))]
        names = set(root.tags.names())
        for tag in self._branch_tags:
            if tag.name not in names:
                data = root.store.get(tag_path(self._branch.branch_path, tag.name))
                cutting.check()
                root.store.put(tag_path(root.branch_path, tag.name), data, within=root.path)
                if keeper is not None:
                    keeper.tag_created(root, tag.name)


class _MovedSchemas:
    """The schemas of a branch on their way to main.

    Attributes:
        found: the schemas of the branch by id, as stored.
    """

    def __init__(self, root: TableRoot, found: dict[int, bytes]) -> None:
        self._root = root
        self.found = found

    def newer(self) -> list[int]:
        """The schemas of main that the branch does not have. Cost: a list, and a get per schema."""
        found = []
        for number in self._root.schemas.ids():
            data = self.found.get(number)
            if number > max(self.found) or (
                data is not None and self._root.store.get(schema_path(self._root.branch_path, number)) != data
            ):
                found.append(number)
        return found

    def move(self, cutting: HistoryCut, *, discard: bool) -> None:
        """Give main the schemas of the branch, before a commit can build on the first new snapshot.

        Raises: NewerSnapshotsError without `discard`: another process has altered the table.
        """
        root = self._root
        self.put(self.found, cutting, discard=discard)
        for number in root.schemas.ids() if discard else ():
            if number > max(self.found):
                cutting.check()
                root.store.delete(schema_path(root.branch_path, number))

    def continue_latest(self, cutting: HistoryCut, *, discard: bool) -> None:
        """Make the latest schema of a branch without new snapshots that of main.

        Schemas that are to be discarded stay: commits in progress may build on the snapshot that stays, under one
        of them. A later schema follows, which is like that of the branch.
        """
        root = self._root
        root.schemas.forget()
        number = max(self.found)
        wanted = schema_from_json(self.found[number], schema_path(root.branch_path, number))
        while True:
            latest, there, others = root.schemas.latest(), root.schemas.ids(), self.newer()
            lacking = [number for number in self.found if number not in there]
            if not others and not lacking:
                return
            cutting.check()
            if not others:
                path = schema_path(root.branch_path, lacking[0])
                root.store.put_new(path, self.found[lacking[0]], within=root.path)
                continue
            if not discard or _definition(latest) == _definition(wanted):
                return
            later = msgspec.structs.replace(
                wanted, id=latest.id + 1, highest_field_id=max(latest.highest_field_id, wanted.highest_field_id),
                time_millis=root.env.clock.millis(),
            )  # fmt: skip
            root.schemas.add(later, after=latest)

    def put(self, chosen: Iterable[int], cutting: HistoryCut, *, discard: bool) -> None:
        """Replace schemas of main by those of the branch if they differ.

        Raises: NewerSnapshotsError without `discard`: another process has altered the table.
        """
        root = self._root
        there = root.schemas.ids()
        for number in chosen:
            path, data = schema_path(root.branch_path, number), self.found[number]
            if number in there and root.store.get(path) == data:
                continue
            cutting.check()
            if discard:
                root.store.put(path, data, within=root.path)
            elif not root.store.put_new(path, data, within=root.path) and root.store.get(path) != data:
                raise NewerSnapshotsError(root.path, [number], "schema")


def _definition(schema: TableSchema) -> tuple[object, ...]:
    """What a schema says about the table."""
    return schema.fields, schema.primary_keys, schema.partition_keys, dict(schema.options), schema.comment
