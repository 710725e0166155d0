"""The table that options name, opened. Without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Union, cast

import pyarrow as pa

from paimon_py import Catalog, Table
from paimon_py.distributed import StreamBatches, with_options
from paimon_py.errors import OptionError, UsageError
from paimon_py.spark.meaning import Meaning
from paimon_py.spark.source.options import BRANCH, CHANGELOG, ZONE, SourceOptions, place_of
from paimon_py.types import MadeTable, SystemTable

if TYPE_CHECKING:
    from paimon_py import Predicate

NEW_CHECKPOINT = "start the query with a new checkpointLocation"
_PRIMARY_KEY, _PARTITION = "primary-key", "partition"

Source = Union[Table, SystemTable, MadeTable]


def open_source(asked: SourceOptions) -> Source:
    """The table, its branch or the system table that options name.

    Cost: as opening a catalog and a table.
    Raises:
        UsageError: no table is named, or a branch of a system table.
        TableNotFoundError, BranchNotFoundError: there is none.
    """
    warehouse, name = place_of(asked)
    if warehouse is None:
        found: Source = Table.open(name, asked.store)
    else:
        catalog = Catalog.open(warehouse or None, {**asked.store, **asked.catalog}, create=False)
        found = cast(Source, catalog.table(name))
    branch = asked.own.get(BRANCH)
    if branch is None:
        return found
    if not isinstance(found, Table):
        raise UsageError(f"the branch of a system table is part of the name: db.t$branch_{branch}$…, not {name!r}")
    return found.branch(branch)


def read_from(asked: SourceOptions) -> Source:
    """What to read: the table that options name, or with `read.changelog` the table that shows kinds as `rowkind`.

    Raises: as `open_source`, and UsageError for the changes of a system table.
    """
    found = open_source(asked)
    if not asked.flag(CHANGELOG):
        return found
    if not isinstance(found, Table):
        raise UsageError(f"{CHANGELOG} shows the changes of a table, not of the system table {found.name}")
    return found.system("audit_log")


def where_of(asked: SourceOptions, schema: pa.Schema) -> Predicate | None:
    """The condition that rows have to meet, as Spark means it; None for all rows.

    Spark does not tell its data sources where the session's clocks are: an option does.

    Raises: UsageError for no condition, and a time whose zone nobody says.
    """
    return None if asked.where is None else Meaning(asked.own.get(ZONE)).condition_on(asked.where, schema)


def batches_of(asked: SourceOptions) -> StreamBatches:
    """The table that options name as one query follows it.

    Raises: as `read_from` and `where_of`, and UsageError for a table that nobody can follow.
    """
    source = read_from(asked)
    return StreamBatches(source, where_of(asked, source.scan().schema), asked.table, NEW_CHECKPOINT)


def write_to(asked: SourceOptions) -> Table:
    """The table to write to, with the options that count for this write.

    Raises: as `open_source`, UsageError for a system table, and OptionError for an option that the data have fixed.
    """
    found = open_source(asked)
    if not isinstance(found, Table):
        raise UsageError(f"{found.name} is a system table, which nobody writes to")
    return with_options(found, _without_keys(found, asked.table))


def _without_keys(table: Table, options: Mapping[str, str]) -> Mapping[str, str]:
    """Options without the keys that a table has anyway, which whoever creates the table names.

    Raises: OptionError for other keys.
    """
    there = {_PRIMARY_KEY: table.schema.primary_keys, _PARTITION: table.schema.partition_keys}
    for name, keys in there.items():
        given = options.get(name)
        if given is not None and tuple(one.strip() for one in given.split(",")) != tuple(keys):
            raise OptionError(
                f"option {name} is {given!r}, and the table has {', '.join(keys) or 'none'}: keys never change",
                option=name, value=given,
            )  # fmt: skip
    return {name: text for name, text in options.items() if name not in there}
