"""The end of a stream.

Source: Java `BoundedChecker`.
"""

from __future__ import annotations

import msgspec

from paimon_py.spec.snapshot import MIN_LONG, Snapshot


class End(msgspec.Struct, frozen=True, kw_only=True):
    """The last snapshot of a stream; the stream is unbounded if none of these is set.

    Attributes:
        snapshot_id: the last one has this id.
        millis: the last one was committed at or before this time.
        watermark: the last one has no larger watermark.
    """

    snapshot_id: int | None = None
    millis: int | None = None
    watermark: int | None = None

    def is_before(self, snapshot: Snapshot) -> bool:
        """Whether a snapshot comes after the end."""
        if self.snapshot_id is not None and snapshot.id > self.snapshot_id:
            return True
        if self.millis is not None and snapshot.time_millis > self.millis:
            return True
        mark = MIN_LONG if snapshot.watermark is None else snapshot.watermark
        return self.watermark is not None and mark > self.watermark

    def is_at(self, snapshot_id: int) -> bool:
        """Whether no snapshot after this one is wanted, whatever it contains."""
        return self.snapshot_id is not None and snapshot_id >= self.snapshot_id

    def is_past(self, now_millis: int) -> bool:
        """Whether all snapshots still to come are after the end."""
        return self.millis is not None and now_millis > self.millis
