"""Which tables and columns of the sources are taken, what the tables are called here, and what they have besides. Pure.

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
"""What an event tells of itself, with the type and the encoding of its column."""


class Routes(msgspec.Struct, frozen=True):
    """How source tables become tables of a catalog.

    Attributes:
        including, excluding: patterns that the whole name of a source table matches, as in Java; excluding wins.
        databases: a pattern that the whole name of the database matches (in PostgreSQL: of the schema).
        merge_shards: tables of one name in several databases are one table here; else each has its database before
            its name, as `database_table`.
        prefix, suffix: what stands before and after the name of every table here.
        names: names of tables here by names of source tables; prefix and suffix do not apply to them.
        keys: primary keys by names of source tables, instead of those that events declare.
        partitions: partition keys of tables that are created, by names of source tables.
        only: columns to take of the tables that are named, as `table.column`.
        without: columns to leave out, as `table.column` or `column`.
        types: modes of the type mapping, with Java's names: `tinyint1-not-bool`, `to-string`, `char-to-string`,
            `longtext-to-bytes`, `bigint-unsigned-to-bigint`, `decimal-no-change`, `allow-non-string-to-string`.
        computed: columns to compute, as `y=year(at)` for all tables that have the column, or `orders.y=year(at)`.
        metadata: names of columns by what the columns tell of the event: `database_name`, `schema_name`, `table_name`,
            `op_ts`, `topic`, `partition`, `offset` or `timestamp`.
        case_sensitive: whether names that differ in case alone are two; False: tables and columns here have their names
            in lower case, as in Java's catalogs with `case-sensitive` = `false`.
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
        """The name of the table here, or None if the source table is not taken."""
        if not re.fullmatch(self.including, table) or (self.excluding and re.fullmatch(self.excluding, table)):
            return None
        if not re.fullmatch(self.databases, database):
            return None
        name = table if self.merge_shards or not database else f"{database}_{table}"
        return self.name_here(self.names.get(name, f"{self.prefix}{name}{self.suffix}"))

    def name_here(self, name: str) -> str:
        """The name here of a table or column, by the rule for case."""
        return name if self.case_sensitive else name.lower()

    def keys_of(self, change: Change) -> tuple[str, ...]:
        """The primary key of the table of a change."""
        return tuple(self.keys.get(change.table, change.keys))

    def left_out(self, table: str, columns: Iterable[str]) -> frozenset[str]:
        """Which of the columns are left out."""
        without = {name for name in self.without if "." not in name} | _of_table(self.without, table)
        kept = _of_table(self.only, table)
        return frozenset(name for name in columns if name in without or (kept and name not in kept))

    @property
    def computations(self) -> tuple[Computed, ...]:
        """What is to be computed."""
        return _parse_computed(tuple(self.computed))


def _of_table(names: Iterable[str], table: str) -> set[str]:
    return {name[len(table) + 1 :] for name in names if name.startswith(table + ".")}


@functools.lru_cache(maxsize=256)
def _parse_computed(texts: tuple[str, ...]) -> tuple[Computed, ...]:
    return tuple(parse(text) for text in texts)
