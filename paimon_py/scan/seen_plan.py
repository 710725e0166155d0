"""The summary of a scan's plan for notebooks, for few store calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paimon_py.scan.time_travel import FoundState

if TYPE_CHECKING:
    from paimon_py.scan.scan import Scan

_MANIFESTS = 4


def seen_plan(scan: Scan) -> dict[str, object]:
    """Files, rows and bytes that would be read, and skipped files; only a hint if that requires many reads.

    Cost: none if the scan was planned before; else the snapshot, its manifest lists, and at most four manifests.
    """
    known = "_whole_plan" in scan.__dict__
    state = scan._state if known or not scan.reads_changes else None
    snapshot = state.snapshot if isinstance(state, FoundState) else None
    if not known and not scan.reads_changes:
        known = snapshot is None or len(scan._root.manifests.base_and_delta(snapshot)) <= _MANIFESTS
    if not known:
        return {"files": "see explain(), which reads manifests and footers"}
    splits, skipped = scan._whole_plan.splits, scan._whole_plan.skipped
    if snapshot is None and not splits and not scan.reads_changes:
        return {"rows": "none: the table is empty"}
    return {
        "snapshot": None if snapshot is None else snapshot.id,
        "splits": len(splits),
        "files to read": sum(len(split.files) for split in splits),
        "files left out": skipped.files,
        "rows in these files": f"{sum(split.row_count for split in splits):,}",
        "bytes": f"{sum(split.size_bytes for split in splits):,}",
    }
