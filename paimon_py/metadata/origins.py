"""The origin of a branch: the snapshots it descends from, stored next to the branch, since the first ones expire.

Java creates branches without such a file, and ignores it.

Source: docs/format.md §15.5; docs/decisions/0030-lineage.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from paimon_py.arguments import decoding_metadata
from paimon_py.codec.json import decode_object, pretty
from paimon_py.errors import CorruptionError
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.layout import MAIN_BRANCH, origin_path
from paimon_py.spec.snapshot import Base, Snapshot
from paimon_py.storage.store import FileMissingError


class BranchOrigin(msgspec.Struct, frozen=True):
    """The origin of a branch.

    Attributes:
        ancestors: the snapshots from which the branch descends, if they existed when it was created, ascending; the
            one it starts with is the last. Empty for a branch that started empty.
    """

    ancestors: tuple[Base, ...] = ()

    def knows(self, snapshot: Snapshot) -> bool:
        """Whether the branch descends from a snapshot, as far as the origin shows."""
        return Base.of(snapshot) in self.ancestors


def origin_of(root: TableRoot) -> BranchOrigin | None:
    """The origin of a branch; None for main, and if it is unknown. Cost: one get.

    Raises: CorruptionError if the file is damaged.
    """
    if root.branch == MAIN_BRANCH:
        return None
    path = origin_path(root.branch_path)
    try:
        data = root.store.get(path)
    except FileMissingError:
        return None
    with decoding_metadata(path):
        return BranchOrigin(tuple(_ancestors(decode_object(data, path), path)))


def origin_at(root: TableRoot, begin: Snapshot | None) -> BranchOrigin:
    """The origin of a branch that is created from a snapshot of this one; None: a branch that starts empty.

    Cost: two lists, and a get for each tag and each snapshot up to that one; the latter in parallel on distant stores.
    """
    if begin is None:
        return BranchOrigin()
    numbers = [number for number in root.snapshots.ids() if number < begin.id]
    known = origin_of(root)
    found = root.env.io.map(root.snapshots.find, numbers) if "://" in root.path else map(root.snapshots.find, numbers)
    before = [Base.of(one) for one in found if one is not None]
    tagged = [Base.of(tag.snapshot) for tag in root.tags.list() if tag.snapshot.id < begin.id]
    older = [*(() if known is None else known.ancestors), *tagged]
    older = [base for base in older if not before or base.id < before[0].id]
    earlier = {base.id: base for base in (*older, *before)}
    return BranchOrigin((*sorted(earlier.values(), key=lambda base: base.id), Base.of(begin)))


def origin_to_json(origin: BranchOrigin) -> bytes:
    """The contents of the file."""
    return pretty({"ancestors": [[base.id, base.mark] for base in origin.ancestors]})


def _ancestors(data: Mapping[str, object], path: str) -> Sequence[Base]:
    try:
        pairs = msgspec.convert(data.get("ancestors"), tuple[tuple[int, str], ...])
        return [Base(number, mark) for number, mark in pairs]
    except msgspec.ValidationError as error:
        raise CorruptionError(f"{path}: the origin of the branch cannot be read: {error}", path=path) from error
