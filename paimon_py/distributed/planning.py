"""Plans of scans in the processes of an engine: some read manifests, others make the splits of a share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from paimon_py.distributed.sent import ENTRIES, Sent
from paimon_py.scan.plan_shares import PlanShares
from paimon_py.scan.plan_tasks import DividedPlan, ManifestsTask, divided_plan, entries_of, splits_of

if TYPE_CHECKING:
    from paimon_py.scan.scan import Scan
    from paimon_py.scan.split import Split

_PLACED = msgspec.msgpack.Decoder(tuple[int, bytes])


class DistributedPlan:
    """The plan of a scan, made by the processes of an engine in two steps: `manifests`, then `shares`.

    Attributes:
        work: bytes for the first step, in order; any process may take any of them.
        share_count: the number of shares, to which the first step sends entries.
    """

    def __init__(self, plan: DividedPlan) -> None:
        self._plan = plan
        self.work = tuple(msgspec.msgpack.encode(one) for one in enumerate(map(bytes, plan.tasks)))
        self.share_count = plan.shares.count

    @classmethod
    def of(cls, scan: Scan) -> DistributedPlan | None:
        """The plan of a scan by processes; None if this process has to plan it, by `scan.iter_splits()`.

        That is the plan of fewer manifests than the option `scan.plan.executor-manifests` says, or of a limit for which
        fewer of them are enough, of changes, of several branches, and of rows that wait for their bucket.

        Cost: the manifest lists of the snapshot, and at most two manifests.
        Raises: SnapshotExpiredError, CorruptionError
        """
        plan = divided_plan(scan)
        return None if plan is None else cls(plan)

    def manifests(self) -> ManifestsPart:
        """The first step, to be called in each process."""
        return ManifestsPart(self._plan.scan, self._plan.shares)

    def shares(self) -> SharesPart:
        """The second step, to be called in each process."""
        return SharesPart(self._plan.scan)


class ManifestsPart:
    """Reads manifests, and sends the entries that the plan needs to the processes of their shares. Can be pickled."""

    def __init__(self, scan: Scan, shares: PlanShares) -> None:
        self.scan = scan
        self.shares = shares

    def __call__(self, work: Iterable[bytes]) -> Iterator[Sent]:
        """`work`: some of `DistributedPlan.work`.

        Raises: SnapshotExpiredError, CorruptionError
        """
        for one in work:
            place, task = _PLACED.decode(one)
            for found in entries_of(self.scan, self.shares, ManifestsTask.from_bytes(task)):
                yield Sent(found.number, ENTRIES, msgspec.msgpack.encode((place, found.manifest)))


class SharesPart:
    """Makes the splits of shares, of which a process has all entries. Can be pickled."""

    def __init__(self, scan: Scan) -> None:
        self.scan = scan

    def __call__(self, sent: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, tuple[Split, ...]]]:
        """The splits of each share, by its number.

        Args:
            sent: the numbers of shares, and what the first step sent to them, in any order.

        Raises: as `Scan.splits`
        """
        shares: dict[int, list[tuple[int, bytes]]] = {}
        for share, data in sent:
            shares.setdefault(share, []).append(_PLACED.decode(data))
        for share in sorted(shares):
            found = sorted(shares.pop(share), key=lambda one: one[0])
            yield share, splits_of(self.scan, [manifest for _, manifest in found])
