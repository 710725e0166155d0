"""Clustering of append tables by some columns: sorted by them, or along a space-filling curve.

Source: Paimon "Dedicated Compaction / Sort Compact", "Incremental Clustering"; Java `CoreOptions.clusteringStrategy`,
`SortCompactAction`, `CompactProcedure`, `SchemaValidation.validateIncrementalClustering`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from paimon_py.arguments import NameList, as_names
from paimon_py.errors import OptionError, UnsupportedError, UsageError
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.option_names import did_you_mean
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.types import Atomic, Field, Root

INCREMENTAL = "clustering.incremental"
_COLUMNS = "clustering.columns"
_STRATEGIES = ("order", "zorder", "hilbert")
_STRATEGY_NAMES = f"{', '.join(_STRATEGIES)} and auto"
_FEW = 5
_WITHOUT_ORDER = frozenset((Root.VARIANT, Root.BLOB, Root.GEOMETRY, Root.GEOGRAPHY))


class Clustering(msgspec.Struct, frozen=True):
    """Columns, and the order of rows by them.

    Attributes:
        columns: names, the most significant first if the order matters.
        strategy: `order` compares column by column; `zorder` and `hilbert` follow a curve that gives every column the
            same weight.
        text_bytes: the number of leading bytes of a string or binary value that the z-order curve uses.
    """

    columns: tuple[str, ...]
    strategy: str
    text_bytes: int = 8


def is_incremental(schema: TableSchema) -> bool:
    """Whether compactions of the table cluster it, level by level, and do nothing else."""
    return not schema.primary_keys and Options(schema.options).get_bool(INCREMENTAL)


def sort_clustering(schema: TableSchema, order_by: NameList | None, strategy: str | None) -> Clustering | None:
    """The clustering requested by a caller of `compact`; None: no clustering.

    Columns default to those in the table's options; without a strategy, rows are sorted column by column.

    Raises:
        UsageError: the table has a primary key, preserves the row order of its buckets, or clusters incrementally; a
            column does not exist, is listed twice or is a partition key; the strategy does not exist or needs more
            columns.
        UnsupportedError: a column has a type without an order.
    """
    if order_by is None and strategy is None:
        return None
    asked = f'compact(order_by=…) takes a list of columns such as ["{order_by if isinstance(order_by, str) else "k"}"]'
    columns = None if order_by is None else as_names(asked, order_by)
    if strategy is not None and not isinstance(strategy, str):
        raise UsageError(f"a clustering strategy is one of {_STRATEGY_NAMES}, not {strategy!r}")
    _check_sortable(schema)
    if columns is None:
        return _clustering(schema, _columns(schema), strategy)
    return _clustering(schema, columns, strategy or "order")


def table_clustering(schema: TableSchema) -> Clustering:
    """The clustering of a table with incremental clustering.

    Raises:
        OptionError: the options name no columns, or contradict each other.
        UsageError, UnsupportedError: as `sort_clustering`.
    """
    check_incremental(schema, Options(schema.options))
    return _clustering(schema, _columns(schema), None)


def check_incremental(schema: TableSchema, options: Options) -> None:
    """Refuse `clustering.incremental` where Java refuses it.

    Raises:
        OptionError: the message gives the reason.
    """
    if not options.get_bool(INCREMENTAL):
        return

    def refuse(why: str) -> OptionError:
        return OptionError(f"{INCREMENTAL!r} {why}", option=INCREMENTAL, value="true")

    if schema.primary_keys:
        raise refuse("cannot be combined with a primary key")
    if options.get_bool("data-evolution.enabled"):
        raise refuse("cannot be combined with 'data-evolution.enabled'")
    if bucket_mode(schema) is not BucketMode.NONE:
        if options.get_bool("bucket-append-ordered"):
            raise refuse("needs 'bucket-append-ordered' = 'false' in a table with buckets")
        if options.get_bool("deletion-vectors.enabled"):
            raise refuse("cannot be combined with 'deletion-vectors.enabled' in a table with buckets")


def check_columns(schema: TableSchema, before: TableSchema | None = None) -> None:
    """Refuse clustering by columns that do not exist.

    Args:
        before: the version that is altered. Java renames and drops columns without updating the option, so names that
            are already stale are accepted.

    Raises: OptionError
    """
    text = Options(schema.options).get_list(_COLUMNS)
    gone = [name for name in text if name not in schema.names]
    if before is not None:
        known = Options(before.options).get_list(_COLUMNS)
        gone = [name for name in gone if name in before.names or name not in known]
    if gone:
        raise OptionError(
            f"option {_COLUMNS!r} = {','.join(text)!r} names {gone[0]!r}, which is not a column"
            f"{did_you_mean(gone[0], schema.names)}; the table has {', '.join(schema.names)}. Set the option again; a "
            "column is dropped together with its name in this option, in one alter",
            option=_COLUMNS,
        )


def _check_sortable(schema: TableSchema) -> None:
    options = Options(schema.options)
    if schema.primary_keys:
        raise UsageError("compact(order_by=…) is for append tables; a table with a primary key is sorted by its key")
    if options.get_bool(INCREMENTAL):
        raise UsageError(f"the table has {INCREMENTAL!r}: compact() clusters it, and takes no order_by and no strategy")
    if bucket_mode(schema) is not BucketMode.NONE and options.get_bool("bucket-append-ordered"):
        raise UsageError(
            "compact(order_by=…) would break the order of rows that 'bucket-append-ordered' promises for every bucket; "
            "it is for tables with 'bucket' = '-1' or 'bucket-append-ordered' = 'false'"
        )


def _columns(schema: TableSchema) -> Sequence[str]:
    found = Options(schema.options).get_list(_COLUMNS)
    if not found:
        raise OptionError(f"no columns to cluster by: give order_by=[…], or set {_COLUMNS!r}", option=_COLUMNS)
    check_columns(schema)
    return found


def _clustering(schema: TableSchema, columns: Sequence[str], strategy: str | None) -> Clustering:
    names = schema.names
    if not columns:
        raise UsageError("compact(order_by=…) needs at least one column")
    for at, name in enumerate(columns):
        if name not in names:
            raise UsageError(f"column {name!r} does not exist; the table can be clustered by {', '.join(names)}")
        if name in schema.partition_keys:
            raise UsageError(f"clustering by {name!r} does nothing: it is a partition key")
        if name in columns[:at]:
            raise UsageError(f"column {name!r} is given twice")
        _check_type(schema.field(name))
    text_bytes = Options(schema.options).get_int("zorder.var-length-contribution")
    if text_bytes < 1:
        option = "zorder.var-length-contribution"
        raise OptionError(f"{option!r} is {text_bytes}; it must be at least 1", option=option, value=str(text_bytes))
    return Clustering(tuple(columns), _strategy(schema, len(columns), strategy), text_bytes)


def _check_type(field: Field) -> None:
    if not isinstance(field.type, Atomic) or field.type.root in _WITHOUT_ORDER:
        kind = field.type.root.value if isinstance(field.type, Atomic) else type(field.type).__name__
        raise UnsupportedError(
            f"column {field.name!r} cannot be clustered by: its type has no order", feature=f"clustering by {kind}"
        )


def _strategy(schema: TableSchema, count: int, given: str | None) -> str:
    wanted = str(given or Options(schema.options).get_str("clustering.strategy")).lower()
    if wanted == "auto":
        wanted = "order" if count == 1 else "zorder" if count < _FEW else "hilbert"
    if wanted not in _STRATEGIES:
        message = f"a clustering strategy is one of {_STRATEGY_NAMES}, not {wanted!r}"
        if given is not None:
            raise UsageError(message)
        raise OptionError(message, option="clustering.strategy", value=wanted)
    if wanted == "hilbert" and count < 2:
        raise UsageError("a Hilbert curve needs at least two columns; use the strategy 'order' for one")
    return wanted
