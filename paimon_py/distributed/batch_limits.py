"""Limits of the batches of a stream. Pure.

Source: Java `PaimonReadLimitGuard`.
"""

from __future__ import annotations

import msgspec

from paimon_py.scan.split import Split


class Size(msgspec.Struct, frozen=True):
    """The total size of some splits."""

    files: int = 0
    bytes: int = 0
    rows: int = 0

    def plus(self, split: Split) -> Size:
        """The size with one more split."""
        return Size(self.files + len(split.files), self.bytes + split.size_bytes, self.rows + split.row_count)


class BatchLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one batch; None: no limit.

    A batch takes splits until one of the limits is reached, and at least one split. It waits until there are `least`
    rows, but no longer than `delay_millis` after the last batch.
    """

    files: int | None = None
    bytes: int | None = None
    rows: int | None = None
    least: int | None = None
    delay_millis: int | None = None

    def is_full(self, size: Size) -> bool:
        """Whether a batch of this size takes no more splits."""
        pairs = ((self.files, size.files), (self.bytes, size.bytes), (self.rows, size.rows))
        return any(most is not None and held >= most for most, held in pairs)

    def is_enough(self, size: Size, waited_millis: int) -> bool:
        """Whether a batch of this size may start after this wait."""
        return self.least is None or size.rows >= self.least or waited_millis > (self.delay_millis or 0)
