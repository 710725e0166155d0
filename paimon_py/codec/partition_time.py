"""The time that the values of a partition say. Pure.

Source: format.md §16.7; Java `PartitionTimeExtractor` of 2.1: before it, `$dt` also stood for the beginning of `$dt1`,
and NULL in a key that the pattern does not name hid the time.
"""

from __future__ import annotations

import msgspec

from paimon_py.codec.date_pattern import DEFAULT_PATTERN, DatePattern
from paimon_py.errors import OptionError, UnsupportedError, UsageError


class PartitionTime(msgspec.Struct, frozen=True):
    """Where the time of a partition stands in its values.

    Attributes:
        keys: the partition keys.
        pattern: a text with `$key` where values stand; None for the first key.
        dates: how the text that results is read.
    """

    keys: tuple[str, ...]
    pattern: str | None
    dates: DatePattern

    @classmethod
    def of(cls, keys: tuple[str, ...], pattern: str | None, formatter: str | None) -> PartitionTime:
        """What the options `partition.timestamp-pattern` and `partition.timestamp-formatter` say.

        Raises: OptionError, UnsupportedError: the formatter is none of Java's, or one that is not read here.
        """
        if formatter is None:
            return cls(keys, pattern, DEFAULT_PATTERN)
        try:
            return cls(keys, pattern, DatePattern.of(formatter))
        except UnsupportedError:
            raise
        except UsageError as error:
            name = "partition.timestamp-formatter"
            raise OptionError(f"{name} = {formatter!r}: {error}", option=name, value=formatter) from error

    def nanos(self, values: tuple[str | None, ...]) -> int | None:
        """Nanoseconds from 1970 to the time on the wall that the values say; None if they say none.

        `values`: texts, as Java prints what it holds: days of a DATE, `2024-01-02T03:04` of a TIMESTAMP.
        """
        text = values[0] if self.pattern is None else self._filled(self.pattern, values)
        return None if text is None else self.dates.nanos(text)

    def _filled(self, pattern: str, values: tuple[str | None, ...]) -> str | None:
        """The pattern with values in it; the longest key that fits stands for itself. None where a value is NULL."""
        known = sorted(zip(self.keys, values, strict=True), key=lambda pair: -len(pair[0]))
        first, *rest = pattern.split("$")
        parts = [first]
        for part in rest:
            key, value = next(((key, value) for key, value in known if part.startswith(key)), ("", "$"))
            if value is None:
                return None
            parts.append(value + part[len(key) :])
        return "".join(parts)
