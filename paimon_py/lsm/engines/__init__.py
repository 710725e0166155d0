"""The merge engines, one independent module each: they merge rows with equal keys into one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paimon_py.lsm.engines.deduplicate import Deduplicate
from paimon_py.lsm.groups import Engine
from paimon_py.spec.engine_rules import SequenceGroup, needs_lookup, removing_fields, sequence_groups
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema

if TYPE_CHECKING:
    from paimon_py.lsm.aggregates.base import Aggregator


def engine_of(schema: TableSchema) -> Engine:
    """The merge engine of a table with a primary key, for the write buffer, compactions and reading."""
    options = Options(schema.options)
    name = options.get_enum("merge-engine")
    ignore_delete = options.get_bool("ignore-delete")
    if name == "first-row":
        from paimon_py.lsm.engines.first_row import FirstRow

        return FirstRow(ignore_delete=ignore_delete)
    if name == "deduplicate":
        engine: Engine = Deduplicate(ignore_delete=ignore_delete)
        looks_up = needs_lookup(options) and bool(options.get_list("sequence.field"))
    else:
        engine = _partial_update(schema, options) if name == "partial-update" else _aggregation(schema, options)
        looks_up = needs_lookup(options)
    if not looks_up:
        return engine
    from paimon_py.lsm.engines.lookup import Lookup

    return Lookup(engine)


def unlooked_engine_of(schema: TableSchema) -> Engine:
    """The merge engine of a table for rows of several partitions, in which no level says what was compared before."""
    engine = engine_of(schema)
    return getattr(engine, "engine", engine)


def combines_rows(schema: TableSchema) -> bool:
    """Whether the engine returns rows that never existed as a version of their key."""
    return Options(schema.options).get_enum("merge-engine") in ("partial-update", "aggregation")


def _aggregation(schema: TableSchema, options: Options) -> Engine:
    from paimon_py.lsm.engines.aggregation import Aggregation
    from paimon_py.spec.aggregate_rules import REMOVE_ON_DELETE

    return Aggregation(schema, remove_on_delete=options.get_bool(REMOVE_ON_DELETE))


def _partial_update(schema: TableSchema, options: Options) -> Engine:
    from paimon_py.lsm.engines.partial_update import PartialUpdate, Retracts

    groups = sequence_groups(options)
    removing = removing_fields(options)
    if options.get_bool("ignore-delete"):
        retracts = Retracts.IGNORE
    elif groups:
        retracts = Retracts.GROUPS
    elif options.get_bool("partial-update.remove-record-on-delete"):
        retracts = Retracts.REMOVE
    else:
        retracts = Retracts.REFUSE
    return PartialUpdate(
        keys=frozenset(schema.primary_keys),
        required=frozenset(field.name for field in schema.fields if not field.type.nullable),
        retracts=retracts,
        groups=groups,
        removing=tuple(group for group in groups if not set(removing).isdisjoint(group.fields)),
        aggregators=_aggregators(schema, groups),
    )


def _aggregators(schema: TableSchema, groups: tuple[SequenceGroup, ...]) -> dict[str, Aggregator]:
    """The aggregate functions of the columns that sequence groups protect."""
    from paimon_py.lsm.aggregates import aggregator_of
    from paimon_py.spec.aggregate_rules import named_function

    named = {column: named_function(schema, column) for group in groups for column in group.columns}
    return {name: aggregator_of(schema, name, function) for name, function in named.items() if function is not None}
