"""Extracts the time of a partition from its values. Pure.

Source: format.md §16.7; Java `PartitionTimeExtractor` of 2.1: before 2.1, `$dt` also matched the beginning of `$dt1`,
and NULL in a key outside the pattern disabled the extraction.
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
    """Extracts the time of a partition from its values.

    Attributes:
        keys: the partition keys.
        pattern: a string with `$key` placeholders for values; None for the first key.
        dates: the pattern that parses the resulting string.
    """

    keys: tuple[str, ...]
    pattern: str | None
    dates: DatePattern

    @classmethod
    def of_options(cls, schema: TableSchema, options: Options) -> PartitionTime:
        """The extraction configured by the options `partition.timestamp-pattern` and `partition.timestamp-formatter`.

        Raises: as `of`
        """
        formatter = options.find_str("partition.timestamp-formatter")
        return cls.of(schema.partition_keys, options.find_str("partition.timestamp-pattern"), formatter)

    @classmethod
    def required_by(cls, schema: TableSchema) -> PartitionTime | None:
        """The extraction that must succeed for every written partition; None if none is required.

        Raises: as `of`
        """
        options = Options(schema.options)
        named = options.is_set("partition.timestamp-pattern") or options.is_set("partition.timestamp-formatter")
        if not (named and schema.partition_keys and options.get_bool("partition.timestamp-format.strict")):
            return None
        return cls.of_options(schema, options)

    @classmethod
    def of(cls, keys: tuple[str, ...], pattern: str | None, formatter: str | None) -> PartitionTime:
        """The extraction for a pattern (None: the first key) and a formatter (None: a plain date, or date and time).

        Raises: OptionError, UnsupportedError: the formatter is invalid in Java, or not supported here.
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
        """Nanoseconds from 1970 to the local time in the values; None if they contain no time.

        `values`: strings in Java's format: the day number of a DATE, `2024-01-02T03:04` of a TIMESTAMP.
        """
        text = values[0] if self.pattern is None else self._fill(self.pattern, values)
        return None if text is None else self.dates.nanos(text)

    def _fill(self, pattern: str, values: tuple[str | None, ...]) -> str | None:
        """The pattern with placeholders replaced, longest matching key first; None if a value is NULL."""
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
    """The values of serialized partitions in the form that `PartitionTime` takes.

    Raises: UnsupportedError: a type without a string form in Java.
    """
    fields = schema.partition_fields
    columns = decode(partitions, [field.type for field in fields])
    texts = [partition_texts(column, field.type, legacy=True) for column, field in zip(columns, fields, strict=True)]
    return list(zip(*(column.to_pylist() for column in texts), strict=True))
