"""Where a branch began: the snapshots that it comes from, kept beside the branch since the branch lets its first ones
expire.

Java makes branches without such a file, and leaves it alone.

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
    """Where a branch began.

    Attributes:
        ancestors: the snapshots that the branch comes from, as far as they were there when it was made, ascending; the
            one it begins with is the last. Empty for a branch that began empty.
    """

    ancestors: tuple[Base, ...] = ()

    def knows(self, snapshot: Snapshot) -> bool:
        """Whether the branch comes from a snapshot, as far as this says."""
        return Base.of(snapshot) in self.ancestors


def origin_of(root: TableRoot) -> BranchOrigin | None:
    """Where a branch began; None for main, and where that is not known. Cost: one get.

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
    """The origin of a branch that is made of a snapshot of this one; None: a branch that begins empty.

    Cost: a list and a get for each snapshot up to that one, at once where requests take their time.
    """
    if begin is None:
        return BranchOrigin()
    numbers = [number for number in root.snapshots.ids() if number < begin.id]
    known = origin_of(root)
    found = root.env.io.map(root.snapshots.find, numbers) if "://" in root.path else map(root.snapshots.find, numbers)
    before = [Base.of(one) for one in found if one is not None]
    older = [] if known is None else [base for base in known.ancestors if not before or base.id < before[0].id]
    return BranchOrigin((*older, *before, Base.of(begin)))


def origin_to_json(origin: BranchOrigin) -> bytes:
    """The bytes of the file."""
    return pretty({"ancestors": [[base.id, base.mark] for base in origin.ancestors]})


def _ancestors(data: Mapping[str, object], path: str) -> Sequence[Base]:
    try:
        pairs = msgspec.convert(data.get("ancestors"), tuple[tuple[int, str], ...])
        return [Base(number, mark) for number, mark in pairs]
    except msgspec.ValidationError as error:
        raise CorruptionError(f"{path}: where the branch began cannot be read: {error}", path=path) from error
