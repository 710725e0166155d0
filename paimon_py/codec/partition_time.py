"""The time that the values of a partition say. Pure.

Source: format.md §16.7; Java `PartitionTimeExtractor` of 2.1: before it, `$dt` also stood for the beginning of `$dt1`,
and NULL in a key that the pattern does not name hid the time.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from paimon_py.codec.binary_row import decode
from paimon_py.codec.date_pattern import DEFAULT_PATTERN, DatePattern
from paimon_py.codec.partition_text import partition_texts
from paimon_py.errors import OptionError, UnsupportedError, UsageError
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema


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
    def of_options(cls, schema: TableSchema, options: Options) -> PartitionTime:
        """What the options `partition.timestamp-pattern` and `partition.timestamp-formatter` say.

        Raises: as `of`
        """
        formatter = options.find_str("partition.timestamp-formatter")
        return cls.of(schema.partition_keys, options.find_str("partition.timestamp-pattern"), formatter)

    @classmethod
    def required_by(cls, schema: TableSchema) -> PartitionTime | None:
        """Where the time must stand in the values of every partition that is written, None if it need not.

        Raises: as `of`
        """
        options = Options(schema.options)
        named = options.is_set("partition.timestamp-pattern") or options.is_set("partition.timestamp-formatter")
        if not (named and schema.partition_keys and options.get_bool("partition.timestamp-format.strict")):
            return None
        return cls.of_options(schema, options)

    @classmethod
    def of(cls, keys: tuple[str, ...], pattern: str | None, formatter: str | None) -> PartitionTime:
        """The time by a pattern, None for the first key, and a formatter, None for a plain date or date and time.

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
        text = values[0] if self.pattern is None else self._fill(self.pattern, values)
        return None if text is None else self.dates.nanos(text)

    def _fill(self, pattern: str, values: tuple[str | None, ...]) -> str | None:
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


def time_texts(schema: TableSchema, partitions: Sequence[bytes]) -> list[tuple[str | None, ...]]:
    """The values of serialized partitions as `PartitionTime` takes them.

    Raises: UnsupportedError: a type whose texts Java does not define.
    """
    fields = schema.partition_fields
    columns = decode(partitions, [field.type for field in fields])
    texts = [partition_texts(column, field.type, legacy=True) for column, field in zip(columns, fields, strict=True)]
    return list(zip(*(column.to_pylist() for column in texts), strict=True))
