"""Options of Spark's reader or writer, grouped by purpose. Pure; does not need Spark.

Source: Java `SparkConnectorOptions`, `SparkSource`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import msgspec

from paimon_py.distributed import OptionGroups, group_options
from paimon_py.errors import OptionError, UsageError
from paimon_py.spark.source.limits import LIMITS

METASTORE, WAREHOUSE = "metastore", "warehouse"
PATH, TABLE, BRANCH = "path", "table", "branch"
COLUMNS, WHERE, TRUNCATE, ZONE = "columns", "where", "truncate-nanos", "timeZone"
CHANGELOG, KINDS = "read.changelog", "read.row-kinds"
MERGE, WIDEN, CAST = "write.merge-schema", "write.merge-schema.type-widening", "write.merge-schema.explicit-cast"
MODE, SPARK_MODE = "overwrite-mode", "partitionOverwriteMode"
USER, IDENTIFIER, CHECKPOINT = "commit-user", "commit-identifier", "checkpointLocation"

_PLACE = (PATH, TABLE, "database", BRANCH)
_READ = (COLUMNS, WHERE, "filter", TRUNCATE, CHANGELOG, ZONE)
_WRITE = (MERGE, WIDEN, CAST, USER, ZONE)
BATCH_READS, BATCH_WRITES = "batch reads", "batch writes"
STREAMS, SINKS = "streaming reads", "streaming writes"
USES: Mapping[str, tuple[str, ...]] = {
    BATCH_READS: _READ,
    STREAMS: (*_READ, KINDS, *LIMITS),
    BATCH_WRITES: (*_WRITE, MODE, SPARK_MODE, IDENTIFIER),
    SINKS: (*_WRITE, CHECKPOINT),
}
"""The options of the data source, by purpose."""

_OF_SPARK = frozenset(("__globpaths__",))
"""Options that Spark adds."""

_ELSEWHERE = {
    "catalog": "a data source does not see Spark's catalogs: give 'warehouse' (or 'metastore' and 'uri') and 'table'",
    "paths": "one table at a time is loaded: give one path",
    "type": "the type of a table cannot change",
}


class SourceOptions(OptionGroups, frozen=True, kw_only=True):
    """The options of a read or write."""

    def flag(self, name: str) -> bool:
        """Whether an option of the data source is true; the default is false.

        Raises: OptionError for a string that is neither true nor false.
        """
        text = self.own.get(name, "false").strip().lower()
        if text not in ("true", "false"):
            raise OptionError(f"option {name} must be true or false, not {text!r}", option=name, value=text)
        return text == "true"

    @property
    def columns(self) -> list[str] | None:
        """The requested columns, None for all: `a,b`, or JSON if names contain commas.

        Raises: OptionError
        """
        text = self.own.get(COLUMNS)
        if text is None:
            return None
        if not text.lstrip().startswith("["):
            return [name.strip() for name in text.split(",")]
        try:
            names = json.loads(text)
        except ValueError as error:
            raise OptionError(f"option {COLUMNS} is not a JSON list: {error}", option=COLUMNS, value=text) from error
        if not all(isinstance(name, str) for name in names):
            raise OptionError(f"option {COLUMNS} is a list of names, not {text!r}", option=COLUMNS, value=text)
        return list(names)

    @property
    def where(self) -> str | None:
        """The condition on the rows, as SQL text; None for all rows.

        Raises: UsageError if it is given twice.
        """
        found = [self.own[name] for name in (WHERE, "filter") if name in self.own]
        if len(found) > 1:
            raise UsageError("where and filter are the same option: give one of them")
        return found[0] if found else None

    def only_for(self, use: str) -> SourceOptions:
        """The options, if all of them are for this use.

        Raises: OptionError for an option that is for another use.
        """
        if use in (BATCH_WRITES, SINKS):
            for name in self.table:
                if name.startswith(("scan.", "incremental-")):
                    raise OptionError(f"option {name!r} is for reads, not for {use}", option=name)
        for name in self.own:
            if name not in _PLACE and name not in USES[use]:
                meant = " and ".join(one for one, names in USES.items() if name in names)
                raise OptionError(f"option {name!r} is for {meant}, not for {use}", option=name)
        return self


def asked_of(options: Mapping[str, str]) -> SourceOptions:
    """Parse the options of a read or write.

    Raises: as `group_options`
    """
    own = {name for names in (_PLACE, *USES.values()) for name in names}
    given = {name: text for name, text in options.items() if name.lower() not in _OF_SPARK}
    return SourceOptions(**msgspec.structs.asdict(group_options(given, own, _ELSEWHERE)))


def place_of(asked: SourceOptions) -> tuple[str | None, str]:
    """The location of the table: None and a path, or the warehouse (empty if the catalog needs none) and `db.t`.

    Raises: UsageError if it is missing or ambiguous.
    """
    own = asked.own
    path, table = own.get(PATH), own.get(TABLE)
    if path is not None and (table is not None or "database" in own):
        raise UsageError(f"give either the path of a table, {path!r}, or a table of a catalog, {table!r}")
    if path is not None:
        if asked.catalog:
            raise UsageError(
                f"{', '.join(asked.catalog)} belongs to 'table' = 'db.t', not to the path of a table, {path!r}"
            )
        return None, path
    if table is None or not (WAREHOUSE in asked.catalog or METASTORE in asked.catalog):
        raise UsageError(
            "which table? Give the path of a table, as load(path) or save(path), or the options 'warehouse' "
            "(or 'metastore' and what belongs to it) and 'table' = 'db.t'"
        )
    name = f"{own['database']}.{table}" if "database" in own else table
    return asked.catalog.get(WAREHOUSE, ""), name
