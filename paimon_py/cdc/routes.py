"""Selects source tables and columns, names the target tables, and adds columns. Pure.

Source: Java `TableNameConverter`, `CdcMetadataProcessor`; options `including_tables`, `excluding_tables`,
`table_prefix`, `table_suffix`, `table_mapping`, `merge_shards`, `computed_column`, `metadata_column`, `type_mapping`,
`partition_keys`, `primary_keys`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping

import msgspec

from paimon_py.cdc.computed import Computed, parse
from paimon_py.cdc.event import Change
from paimon_py.cdc.mapping import check_modes
from paimon_py.errors import UsageError
from paimon_py.spec.types import STRING, Atomic, DataType, Root

_TEXT = (STRING, "string")
_MOMENT = (Atomic(Root.TIMESTAMP_LTZ, precision=3), "millis")
METADATA: Mapping[str, tuple[DataType, str]] = {
    "database_name": _TEXT, "schema_name": _TEXT, "table_name": _TEXT, "op_ts": _MOMENT, "topic": _TEXT,
    "partition": (Atomic(Root.INT), "int32"), "offset": (Atomic(Root.BIGINT), "int64"), "timestamp": _MOMENT,
}  # fmt: skip
"""The metadata of an event, with the type and encoding of its column."""


class Routes(msgspec.Struct, frozen=True):
    """A mapping of source tables to tables of a catalog.

    Attributes:
        including, excluding: patterns for full source table names, as in Java; excluding takes precedence.
        databases: a pattern for full database names (in PostgreSQL: of schemas).
        merge_shards: tables with the same name in several databases become one target table; otherwise target names are
            prefixed with the database, as in `database_table`.
        prefix, suffix: added to the name of every target table.
        names: target names by source table name; prefix and suffix do not apply to them.
        keys: primary keys by source table name, instead of those that events declare.
        partitions: partition keys of created tables, by source table name.
        only: columns to include for the named tables, as `table.column`.
        without: columns to exclude, as `table.column` or `column`.
        types: modes of the type mapping, with Java's names: `tinyint1-not-bool`, `to-string`, `char-to-string`,
            `longtext-to-bytes`, `bigint-unsigned-to-bigint`, `decimal-no-change`, `allow-non-string-to-string`.
        computed: columns to compute, as `y=year(at)` for all tables that have the column, or `orders.y=year(at)`.
        metadata: column names by event metadata: `database_name`, `schema_name`, `table_name`, `op_ts`, `topic`,
            `partition`, `offset` or `timestamp`.
        case_sensitive: whether names that differ only in case are different; False: target tables and columns have
            lower-case names, as in Java's catalogs with `case-sensitive` = `false`.
    """

    including: str = ".*"
    excluding: str | None = None
    databases: str = ".*"
    merge_shards: bool = True
    prefix: str = ""
    suffix: str = ""
    names: Mapping[str, str] = {}
    keys: Mapping[str, tuple[str, ...]] = {}
    partitions: Mapping[str, tuple[str, ...]] = {}
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    computed: tuple[str, ...] = ()
    metadata: Mapping[str, str] = {}
    case_sensitive: bool = True

    def __post_init__(self) -> None:
        for name in ("including", "excluding", "databases"):
            text = getattr(self, name)
            try:
                re.compile(text or "")
            except (re.error, TypeError) as error:
                raise UsageError(f"{name}={text!r} is not a pattern: {error}") from error
        for name in ("only", "without", "computed"):
            if isinstance(getattr(self, name), str):
                raise UsageError(f"{name} is a list such as ['orders.note'], not {getattr(self, name)!r}")
        if any("." not in column for column in self.only):
            raise UsageError(f"only={self.only!r} is not a list of columns such as ['orders.note']")
        check_modes(self.types)
        _parse_computed(tuple(self.computed))
        unknown = sorted(set(self.metadata) - set(METADATA))
        if unknown:
            raise UsageError(f"metadata={unknown} is not there, but {sorted(METADATA)}")

    def target(self, table: str, database: str = "") -> str | None:
        """The name of the target table; None if the source table is not included."""
        if not re.fullmatch(self.including, table) or (self.excluding and re.fullmatch(self.excluding, table)):
            return None
        if not re.fullmatch(self.databases, database):
            return None
        name = table if self.merge_shards or not database else f"{database}_{table}"
        return self.name_here(self.names.get(name, f"{self.prefix}{name}{self.suffix}"))

    def name_here(self, name: str) -> str:
        """The target name of a table or column, in the configured case."""
        return name if self.case_sensitive else name.lower()

    def keys_of(self, change: Change) -> tuple[str, ...]:
        """The primary key of the table of a change."""
        return tuple(self.keys.get(change.table, change.keys))

    def left_out(self, table: str, columns: Iterable[str]) -> frozenset[str]:
        """The columns that are excluded."""
        without = {name for name in self.without if "." not in name} | _of_table(self.without, table)
        kept = _of_table(self.only, table)
        return frozenset(name for name in columns if name in without or (kept and name not in kept))

    @property
    def computations(self) -> tuple[Computed, ...]:
        """The computed columns."""
        return _parse_computed(tuple(self.computed))


def _of_table(names: Iterable[str], table: str) -> set[str]:
    return {name[len(table) + 1 :] for name in names if name.startswith(table + ".")}


@functools.lru_cache(maxsize=256)
def _parse_computed(texts: tuple[str, ...]) -> tuple[Computed, ...]:
    return tuple(parse(text) for text in texts)
