"""Fast-forward: main becomes what a branch is.

Main keeps exactly the snapshots that the branch comes from. What main has besides is let go only if the caller says so.

Source: format.md §15.5; docs/reliability.md §3 (o); Java `FileSystemBranchManager.fastForward`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from paimon_py.errors import CommitConflictError, SnapshotExpiredError, UsageError
from paimon_py.logs import COMMITS
from paimon_py.maintain.cutting import Cutting, ancestors, check_no_expiry
from paimon_py.maintain.expired import FastForwarded
from paimon_py.maintain.rollback import consumers_beyond, warn_of_consumers
from paimon_py.metadata.ancestry import is_built_on
from paimon_py.metadata.branches import check_new_branch, require_branch
from paimon_py.metadata.cuts import FAST_FORWARD
from paimon_py.metadata.id_runs import current_run, shown_ids
from paimon_py.metadata.origins import BranchOrigin, origin_of
from paimon_py.metadata.registration import keeper_of
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.layout import MAIN_BRANCH, schema_path, tag_path
from paimon_py.spec.snapshot import Snapshot, Tag


class Parting(msgspec.Struct, frozen=True, kw_only=True):
    """Where a branch parted from main.

    Attributes:
        kept: the newest snapshot of main that stays, with the ancestors it has there; None: none of them stays.
        last_shared: the newest snapshot that the branch comes from, 0 for none: `kept`, or one of which the branch has
            let the successors expire.
        newer: the snapshots of main that the branch does not come from, ascending.
    """

    kept: Snapshot | None
    last_shared: int
    newer: tuple[int, ...]


def fast_forward(root: TableRoot, name: str, *, discard: bool) -> FastForwarded:
    """Make main what a branch is.

    Snapshots of main that the branch does not come from are deleted newest first, then those of the branch are written,
    oldest first. A reader finds a state of either at every moment. A call whose process ended is repeated; all others
    refuse until then. Consumers that have read what is deleted are warned of.

    Args:
        discard: let go what main has and the branch does not come from: snapshots, tags, changes of the schema.

    Cost: some lists of each side, a get for each snapshot and tag, a get and a delete for each snapshot that is
        deleted, a put for each that comes.
    Raises:
        BranchNotFoundError
        UsageError: the branch has no snapshot, or this is not main.
        CommitConflictError: main has what the branch does not come from, or somebody commits to it meanwhile; or a
            rollback, an expiry or another fast-forward is at work. Nothing was done.
        SnapshotExpiredError: the branch let snapshots expire meanwhile; nothing was done.
        StorageError: the store failed; call again.
    """
    if root.branch != MAIN_BRANCH:
        raise UsageError(f"main is moved on, not the branch {root.branch!r}: call fast_forward on the table itself")
    branch = require_branch(root, check_new_branch(name))
    if not branch.snapshots.ids():
        raise UsageError(f"branch {name!r} of {root.path} has no snapshot: there is nothing to move main on to")
    branch.cuts.refuse()
    move = _Move(root, branch, discard=discard)
    move.require_nothing_newer()
    consumers = consumers_beyond(root, move.parting.last_shared + 1) if move.parting.newer else ()
    done = msgspec.structs.replace(move.by_catalog() if root.history is not None else move.run(), consumers=consumers)
    COMMITS.info("%s: moved on to branch %s, snapshot %d", root.path, name, done.snapshot_id)
    warn_of_consumers(root, consumers, move.parting.last_shared + 1)
    return done


def part(
    root: TableRoot, there: Mapping[int, Snapshot], coming: Mapping[int, Snapshot], origin: BranchOrigin | None
) -> Parting:
    """Where a branch parted from main.

    Args:
        there: the snapshots of main by id; `coming`: those of the branch.
        origin: where the branch began, None if that is not known.

    Cost: none; two lists for a snapshot of another writer.
    """
    shared = [number for number, one in there.items() if number in coming and coming[number].mark == one.mark]
    first = coming[min(coming)]
    parent = there.get(first.id - 1)
    if not shared and parent is not None and is_built_on(root.manifests, first, parent):
        shared = [parent.id]
    if shared:
        last = max(shared)
        return Parting(kept=there[last], last_shared=last, newer=tuple(n for n in sorted(there) if n > last))
    known = [number for number, one in there.items() if origin is not None and origin.knows(one)]
    last = max(known, default=0)
    return Parting(kept=None, last_shared=last, newer=tuple(number for number in sorted(there) if number > last))


class _Move:
    """One fast-forward: what there is on both sides, and what becomes of it."""

    def __init__(self, root: TableRoot, branch: TableRoot, *, discard: bool) -> None:
        self._root = root
        self._branch = branch
        self._discard = discard
        self._found = {one.id: one for number in branch.snapshots.ids() if (one := branch.snapshots.find(number))}
        if not self._found:
            raise self._expired()
        history = current_run(sorted(self._found), lambda: None)
        self._coming = {number: self._found[number] for number in history}
        self._there = {one.id: one for number in root.snapshots.ids() if (one := root.snapshots.find(number))}
        self._schemas = {
            number: branch.store.get(schema_path(branch.branch_path, number)) for number in branch.schemas.ids()
        }
        self._branch_tags = branch.tags.list()
        self.parting = part(root, self._there, self._all(), origin_of(branch))
        self.tags = self._leaving_tags(root.tags.list())

    def _all(self) -> dict[int, Snapshot]:
        """What comes, with those that a call which ended in the middle has kept and the branch has let expire since."""
        cut = None if self._root.history is not None else self._root.cuts.find()
        held = cut.snapshots if cut is not None and cut.branch == self._branch.branch else ()
        return dict(sorted({**{one.id: one for one in held}, **self._coming}.items()))

    def require_nothing_newer(self) -> None:
        """Make sure that main has nothing that the branch does not come from, unless that is to go.

        Raises: CommitConflictError
        """
        if self._discard:
            return
        newer, schemas = self.parting.newer, self._newer_schemas()
        parts = [shown_ids("snapshot", newer)] if newer else []
        parts += [f"the tags {', '.join(map(repr, self.tags))}"] if self.tags else []
        parts += [shown_ids("schema", schemas)] if schemas else []
        if parts:
            name = self._branch.branch
            raise CommitConflictError(
                f"nothing was done: {self._root.path} has {' and '.join(parts)}, which the branch {name!r} does not"
                f" build on: fast_forward({name!r}, discard=True) lets them go. To keep them, write what the branch"
                " changed to the table itself",
                table=self._root.path,
            )

    def run(self) -> FastForwarded:
        """Move main."""
        root, kept, coming = self._root, self.parting.kept, list(self._all().values())
        cutting = Cutting(root, FAST_FORWARD, coming, self._branch.branch)
        coming = [one for one in coming if kept is None or one.id > kept.id]
        with cutting.at_work():
            self._look_again()
            if not self._discard and set(root.snapshots.ids()) - set(self._there):
                raise self._others_commit()
            if kept is not None and not cutting.holds(kept):
                check_no_expiry(root, kept.id)
        stays = frozenset() if kept is None else frozenset((kept.id, *(one.id for one in ancestors(root, kept))))
        self._put_schemas(lambda number: number not in root.schemas.ids())
        last = coming[-1] if coming else kept
        assert last is not None
        if coming and not self._discard and not cutting.claim(self._there.get(max(self._there, default=0)), coming[0]):
            cutting.end()
            raise self._others_commit()
        if coming or self._discard:
            cutting.replace(stays, coming or [last], between=lambda: self._put_schemas(lambda _: True))
        root.changelogs.cut([number for number in root.changelogs.ids() if kept is None or number > kept.id])
        self._move_tags()
        for number in self._newer_schemas():
            root.store.delete(schema_path(root.branch_path, number))
        root.schemas.forget()
        cutting.forget_numbers(last)
        for value in self._branch.users.all():
            root.users.put(value)
        cutting.end()
        root.upkeep.forget()
        return self._result(last.id, set(root.snapshots.ids()), cutting.gone)

    def by_catalog(self) -> FastForwarded:
        """Have the catalog move main, where it keeps the history."""
        assert self._root.history is not None
        self._root.history.fast_forward(self._branch.branch)
        self._root.schemas.forget()
        return self._result(max(self._coming), set(self._coming), set())

    def _result(self, latest: int, left: set[int], deleted: set[int]) -> FastForwarded:
        before = {number: one.mark for number, one in self._there.items()}
        all_coming = self._all()
        same = {number for number, mark in before.items() if number in all_coming and all_coming[number].mark == mark}
        stays = {number for number in before if self.parting.kept is not None and number <= self.parting.kept.id}
        return FastForwarded(
            snapshot_id=latest,
            gone_ids=tuple(sorted(deleted.union(before) - same - (stays & left))),
            new_ids=tuple(number for number in all_coming if number not in same),
            tags=tuple(self.tags),
        )

    def _look_again(self) -> None:
        """The snapshots of the branch are still there, now that the cut keeps their files from its expiry.

        Raises: SnapshotExpiredError
        """
        if not set(self._coming) <= set(self._branch.snapshots.ids()):
            raise self._expired()

    def _others_commit(self) -> CommitConflictError:
        return CommitConflictError(
            f"nothing was done: others commit to {self._root.path} meanwhile. Stop them, or let"
            f" fast_forward({self._branch.branch!r}, discard=True) delete what they commit",
            table=self._root.path,
        )

    def _expired(self) -> SnapshotExpiredError:
        return SnapshotExpiredError(
            f"branch {self._branch.branch!r} of {self._root.path} let snapshots expire meanwhile; call again",
            path=self._branch.branch_path,
        )

    # -- tags and schemas ---------------------------------------------------------------------------------------------

    def _leaving_tags(self, tags: list[Tag]) -> list[str]:
        """The tags of main that name what the branch does not come from."""
        marks = {one.mark for one in (*self._all().values(), *(tag.snapshot for tag in self._branch_tags))}
        last = self.parting.last_shared
        return [tag.name for tag in tags if tag.snapshot.id > last and tag.snapshot.mark not in marks]

    def _move_tags(self) -> None:
        """Delete tags of main, and take over those of the branch; one of main that stays keeps its name."""
        root, keeper = self._root, keeper_of(self._root)
        for name in self.tags:
            root.store.delete(tag_path(root.branch_path, name))
            if keeper is not None:
                keeper.tag_gone(root, name)
        names = set(root.tags.names())
        for tag in self._branch_tags:
            if tag.name not in names:
                data = root.store.get(tag_path(self._branch.branch_path, tag.name))
                root.store.put(tag_path(root.branch_path, tag.name), data, within=root.path)
                if keeper is not None:
                    keeper.tag_made(root, tag.name)

    def _newer_schemas(self) -> list[int]:
        """The schemas of main that the branch does not have. Cost: a list, and a get for each."""
        found = []
        for number in self._root.schemas.ids():
            data = self._schemas.get(number)
            if number > max(self._schemas) or (
                data is not None and self._root.store.get(schema_path(self._root.branch_path, number)) != data
            ):
                found.append(number)
        return found

    def _put_schemas(self, chosen: Callable[[int], bool]) -> None:
        """Put schemas of the branch in the place of main's, where they differ."""
        root = self._root
        there = root.schemas.ids()
        for number, data in self._schemas.items():
            path = schema_path(root.branch_path, number)
            if chosen(number) and (number not in there or root.store.get(path) != data):
                root.store.put(path, data, within=root.path)
