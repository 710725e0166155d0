"""How much a batch of a stream reads: pure.

Source: Java `PaimonReadLimitGuard`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from paimon_py.errors import OptionError, UsageError

if TYPE_CHECKING:
    from paimon_py.types import Split

FILES, BYTES = "read.stream.maxFilesPerTrigger", "read.stream.maxBytesPerTrigger"
ROWS = "read.stream.maxRowsPerTrigger"
LEAST, DELAY = "read.stream.minRowsPerTrigger", "read.stream.maxTriggerDelayMs"
LIMITS = (FILES, BYTES, ROWS, LEAST, DELAY)


class Size(msgspec.Struct, frozen=True):
    """How much some splits hold."""

    files: int = 0
    bytes: int = 0
    rows: int = 0

    def plus(self, split: Split) -> Size:
        """The size with one more split."""
        return Size(self.files + len(split.files), self.bytes + split.size_bytes, self.rows + split.row_count)


class BatchLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What options allow of one batch; None for any number.

    A batch takes splits until one of the numbers is reached, so that there is always at least one. `least` rows are
    waited for, but for no longer than `delay_millis` after the last batch.
    """

    files: int | None = None
    bytes: int | None = None
    rows: int | None = None
    least: int | None = None
    delay_millis: int | None = None

    @classmethod
    def of(cls, own: Mapping[str, str]) -> BatchLimits:
        """The limits that options set.

        Raises: OptionError, UsageError
        """
        files, size, rows, least, delay = (_number(name, own.get(name)) for name in LIMITS)
        if (least is None) is not (delay is None):
            raise UsageError(f"{LEAST} and {DELAY} belong together: rows are waited for, but not for ever")
        return cls(files=files, bytes=size, rows=rows, least=least, delay_millis=delay)

    def is_full(self, size: Size) -> bool:
        """Whether a batch that holds so much takes no more."""
        pairs = ((self.files, size.files), (self.bytes, size.bytes), (self.rows, size.rows))
        return any(most is not None and held >= most for most, held in pairs)

    def is_enough(self, size: Size, waited_millis: int) -> bool:
        """Whether so much is worth a batch, after so long a time."""
        return self.least is None or size.rows >= self.least or waited_millis > (self.delay_millis or 0)


def _number(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not text.strip().isdigit() or int(text) < 1:
        raise OptionError(f"option {name} is a number from 1, not {text!r}", option=name, value=text)
    return int(text)
