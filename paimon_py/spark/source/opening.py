"""Opens the table in the options. Does not need Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Union, cast

import pyarrow as pa

from paimon_py import Catalog, Table
from paimon_py.distributed import StreamBatches, with_options
from paimon_py.errors import OptionError, UsageError
from paimon_py.spark.meaning import Meaning
from paimon_py.spark.source.options import BRANCH, CHANGELOG, ZONE, SourceOptions, place_of
from paimon_py.types import MetadataTable, SystemTable

if TYPE_CHECKING:
    from paimon_py import Predicate

NEW_CHECKPOINT = "start the query with a new checkpointLocation"
_PRIMARY_KEY, _PARTITION = "primary-key", "partition"

Source = Union[Table, SystemTable, MetadataTable]


def open_source(asked: SourceOptions) -> Source:
    """Open the table, branch or system table in the options.

    Cost: as opening a catalog and a table.
    Raises:
        UsageError: the options contain no table, or a branch of a system table.
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
    """Open the table to read: the one in the options, or with `read.changelog` its table with the column `rowkind`.

    Raises: as `open_source`, and UsageError for the changes of a system table.
    """
    found = open_source(asked)
    if not asked.flag(CHANGELOG):
        return found
    if not isinstance(found, Table):
        raise UsageError(f"{CHANGELOG} shows the changes of a table, not of the system table {found.name}")
    return found.system("audit_log")


def where_of(asked: SourceOptions, schema: pa.Schema) -> Predicate | None:
    """The condition on the rows, with its meaning in Spark; None for all rows.

    Spark does not give its data sources the time zone of the session, so an option contains it.

    Raises: UsageError for an invalid condition, and for a time whose zone is unknown.
    """
    return None if asked.where is None else Meaning(asked.own.get(ZONE)).condition_on(asked.where, schema)


def batches_of(asked: SourceOptions) -> StreamBatches:
    """The batches of a query that follows the table in the options.

    Raises: as `read_from` and `where_of`, and UsageError for a table that cannot be followed.
    """
    source = read_from(asked)
    return StreamBatches(source, where_of(asked, source.scan().schema), asked.table, NEW_CHECKPOINT)


def write_to(asked: SourceOptions) -> Table:
    """The table to write to, with the options for this write.

    Raises: as `open_source`, UsageError for a system table, and OptionError for an option that cannot change once there
    are data.
    """
    found = open_source(asked)
    if not isinstance(found, Table):
        raise UsageError(f"{found.name} is a system table, which cannot be written")
    return with_options(found, _without_keys(found, asked.table))


def _without_keys(table: Table, options: Mapping[str, str]) -> Mapping[str, str]:
    """Options without keys equal to those of the table, which are only needed to create it.

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
