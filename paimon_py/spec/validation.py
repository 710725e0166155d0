"""Rules for table schemas; Java checks them before it writes a schema file.

Each rule is a small function over the schema and its options; the first violation raises. Rules about file formats,
statistics and default values are in `file_rules`; valid but unsupported schemas are in `supported`.

Source: format.md §3, §7.3, §12; Java `Schema.normalizeFields`, `TableSchema`, `SchemaValidation`, release 2.0.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from paimon_py.errors import OptionError, SchemaError
from paimon_py.spec.aggregate_rules import check_aggregates
from paimon_py.spec.blobs import PACKING_ENGINES, holds_blobs, mentions_blobs, packed_fields
from paimon_py.spec.bucket_mode import is_cross_partition
from paimon_py.spec.bucket_rules import check_bucket, check_bucket_key
from paimon_py.spec.clustering import check_columns, check_incremental
from paimon_py.spec.engine_rules import check_engine
from paimon_py.spec.file_rules import FILE_RULES
from paimon_py.spec.iceberg import check_iceberg
from paimon_py.spec.option_names import DEFAULT_AGGREGATE, FIELDS_PREFIX, did_you_mean
from paimon_py.spec.options import Options
from paimon_py.spec.schema import KEY_PREFIX, SEQUENCE_NUMBER, SYSTEM_FIELD_ID_START, VALUE_KIND, TableSchema
from paimon_py.spec.type_text import children, sql_type
from paimon_py.spec.types import Atomic, DataType, Field, Root, RowType

SYSTEM_COLUMNS = frozenset((SEQUENCE_NUMBER, VALUE_KIND, "_LEVEL", "rowkind", "_ROW_ID"))
_NO_KEY_TYPES = frozenset((Root.VARIANT, Root.BLOB, Root.GEOMETRY, Root.GEOGRAPHY))
_TIME_TYPES = frozenset((Root.INT, Root.BIGINT, Root.TIMESTAMP, Root.TIMESTAMP_LTZ))
_START_OPTIONS = {
    "from-timestamp": ("scan.timestamp-millis", "scan.timestamp"),
    "from-snapshot": ("scan.snapshot-id", "scan.tag-name", "scan.watermark", "scan.version"),
    "from-snapshot-full": ("scan.snapshot-id",),
    "from-file-creation-time": ("scan.file-creation-time-millis",),
    "from-creation-timestamp": ("scan.creation-time-millis",),
    "incremental": ("incremental-between", "incremental-between-timestamp", "incremental-to-auto-tag"),
}


def validate(schema: TableSchema, before: TableSchema | None = None) -> None:
    """Check every rule. `before`: the version that is altered.

    Raises:
        SchemaError: columns or keys violate a rule; the message names it.
        OptionError: an option violates a rule.
        UnsupportedError: Iceberg metadata is configured that cannot be written.
    """
    options = Options(schema.options)
    for rule in (*_RULES, *FILE_RULES):
        rule(schema, options)
    check_columns(schema, before)
    check_iceberg(schema, before)


def _columns(schema: TableSchema, _options: Options) -> None:
    if not schema.fields:
        raise SchemaError("a table needs at least one column")
    _refuse_duplicates("columns", schema.names)
    for field in schema.fields:
        _refuse_nested_duplicates(field.type)
        if field.name in SYSTEM_COLUMNS:
            raise SchemaError(
                f"column name {field.name!r} is reserved for the system, as are {', '.join(sorted(SYSTEM_COLUMNS))}",
                fields=(field.name,),
            )
        if field.name.startswith(KEY_PREFIX):
            raise SchemaError(f"column name {field.name!r} must not start with {KEY_PREFIX}", fields=(field.name,))
    if schema.highest_field_id >= SYSTEM_FIELD_ID_START:
        raise SchemaError("field ids have reached those of system fields")


def _keys(schema: TableSchema, options: Options) -> None:
    for what, keys in (("partition keys", schema.partition_keys), ("primary key", schema.primary_keys)):
        _refuse_duplicates(what, keys)
        _refuse_unknown(schema, what, keys)
        for name in keys:
            data_type = schema.field(name).type
            if not isinstance(data_type, Atomic) or data_type.root in _NO_KEY_TYPES:
                raise SchemaError(
                    f"column {name!r} of type {sql_type(data_type)} cannot be one of the {what}", fields=(name,)
                )
    if schema.primary_keys and set(schema.primary_keys) <= set(schema.partition_keys):
        raise SchemaError(
            f"primary key {list(schema.primary_keys)} contains only partition keys "
            f"{list(schema.partition_keys)}: a partition could hold one row only",
            fields=schema.primary_keys,
        )
    if options.get_bool("primary-key.nullable") and not schema.primary_keys:
        raise OptionError("'primary-key.nullable' needs a primary key", option="primary-key.nullable", value="true")


def _blobs(schema: TableSchema, options: Options) -> None:
    """Check where BLOBs are used, and the options that they require."""
    found = [field for field in schema.fields if mentions_blobs(field.type)]
    for field in found:
        if not holds_blobs(field.type):
            raise SchemaError(
                f"column {field.name!r} of type {sql_type(field.type)}: a BLOB is a column by itself, an element of an "
                "ARRAY, or a value of a MAP with whole numbers or texts as keys",
                fields=(field.name,),
            )
    if found and len(found) == len(schema.fields):
        raise SchemaError("a table with BLOBs needs at least one other column", fields=(found[0].name,))
    _packed_blobs(schema, options)
    apart = [] if schema.primary_keys else found
    if apart and not options.get_bool("data-evolution.enabled"):
        raise SchemaError(
            f"column {apart[0].name!r} holds BLOBs, which needs the options 'row-tracking.enabled' and "
            "'data-evolution.enabled' = 'true'",
            fields=(apart[0].name,),
        )


def _packed_blobs(schema: TableSchema, options: Options) -> None:
    """Check the options of a primary-key table whose BLOBs are stored in packs."""
    names = {field.name for field in packed_fields(schema)}
    if not names:
        return
    for option in ("bucket-key", "sequence.field"):
        if wrong := names.intersection(options.get_list(option)):
            name = min(wrong)
            raise OptionError(f"{name!r} holds BLOBs and cannot be in {option!r}", option=option, value=name)
    needed = {
        "merge-engine": (options.get_enum("merge-engine"), PACKING_ENGINES),
        "changelog-producer": (options.get_enum("changelog-producer"), ("none",)),
    }
    for option, (value, allowed) in needed.items():
        if value not in allowed:
            words = ", ".join(map(repr, allowed))
            message = f"a primary key and BLOBs need {option!r} = {words}, not {value!r}"
            raise OptionError(message, option=option, value=value)
    for option in ("data-file.external-paths", "pk-clustering-override"):
        if options.is_set(option) and options.get(option, "").lower() != "false":
            raise OptionError(f"{option!r} and BLOBs under a primary key exclude each other", option=option)


def _start(_schema: TableSchema, options: Options) -> None:
    given = {name for names in _START_OPTIONS.values() for name in names if options.is_set(name)}
    if not given and not options.is_set("scan.mode"):
        return
    mode = options.get_enum("scan.mode")
    if mode == "default":
        mode = next((mode for mode, names in _START_OPTIONS.items() if given & set(names)), "latest-full")
    wanted = _START_OPTIONS.get(mode, ())
    if wanted and len(given & set(wanted)) != 1:
        raise OptionError(
            f"'scan.mode' = {mode!r} needs exactly one of {', '.join(wanted)}", option="scan.mode", value=mode
        )
    others = sorted(given - set(wanted))
    if others:
        raise OptionError(f"option {others[0]!r} cannot be combined with 'scan.mode' = {mode!r}", option=others[0])


def _field_options(schema: TableSchema, options: Options) -> None:
    for name in options:
        if not name.startswith(FIELDS_PREFIX) or name == DEFAULT_AGGREGATE:
            continue
        parts = name.split(".")
        columns = parts[1].split(",")
        unknown = [column for column in columns if column not in schema.names]
        if unknown:
            hint = did_you_mean(unknown[0], schema.names)
            raise OptionError(f"option {name!r} names column {unknown[0]!r}, which does not exist{hint}", option=name)
        if len(parts) > 3 and len(columns) == 1 and isinstance(schema.field(columns[0]).type, RowType):
            raise OptionError(f"option {name!r} refers to a field of a ROW column; use a top-level column", option=name)


def _sequence(schema: TableSchema, options: Options) -> None:
    text = options.find_str("sequence.field")
    if text is None:
        return
    names = tuple(part.strip() for part in text.split(","))

    def refuse(reason: str) -> OptionError:
        return OptionError(f"option 'sequence.field' = {text!r} {reason}", option="sequence.field", value=text)

    unknown = [name for name in names if name not in schema.names]
    if unknown:
        raise refuse(f"names {unknown}, which are not columns{did_you_mean(unknown[0], schema.names)}")
    if len(set(names)) < len(names):
        raise refuse("names a column twice")
    aggregated = [name for name in names if options.get(f"fields.{name}.aggregate-function") is not None]
    if aggregated:
        raise refuse(f"names {aggregated}, which have an aggregate function")
    if options.get_enum("merge-engine") == "first-row":
        raise refuse("cannot be combined with 'merge-engine' = 'first-row'")
    if is_cross_partition(schema):
        raise refuse(
            f"needs a primary key that holds all partition keys; {list(schema.primary_keys)} lacks some of "
            f"{list(schema.partition_keys)}"
        )


def _snapshot_ordering(schema: TableSchema, options: Options) -> None:
    name = "sequence.snapshot-ordering"
    if not options.get_bool(name):
        return
    if not schema.primary_keys:
        raise OptionError(f"{name!r} needs a primary key", option=name, value="true")
    if options.get_list("sequence.field"):
        raise OptionError(f"{name!r} cannot be combined with 'sequence.field'", option=name, value="true")
    if not options.get_bool("write-only"):
        raise OptionError(f"{name!r} needs 'write-only' = 'true'", option=name, value="true")


def _row_kind(schema: TableSchema, options: Options) -> None:
    name = options.find_str("rowkind.field")
    if name is not None and name not in schema.names:
        raise OptionError(
            f"option 'rowkind.field' = {name!r} is not a column{did_you_mean(name, schema.names)}",
            option="rowkind.field",
            value=name,
        )


def _changelog_producer(schema: TableSchema, options: Options) -> None:
    producer = options.get_enum("changelog-producer")
    by_compaction = producer in ("full-compaction", "lookup")

    def refuse(reason: str) -> OptionError:
        return OptionError(
            f"option 'changelog-producer' = {producer!r} {reason}", option="changelog-producer", value=producer
        )

    if producer != "none" and not schema.primary_keys:
        raise refuse("needs a primary key")
    if by_compaction and options.get_bool("streaming-read-overwrite"):
        raise refuse("cannot be combined with 'streaming-read-overwrite' = 'true': changes would be read twice")
    if producer == "lookup" and options.is_set("full-compaction.delta-commits"):
        raise refuse("cannot be combined with 'full-compaction.delta-commits'; use 'full-compaction'")
    if not schema.primary_keys and options.get_bool("streaming-read-overwrite"):
        raise OptionError(
            "'streaming-read-overwrite' needs a primary key; append tables have 'streaming-read-append-overwrite'",
            option="streaming-read-overwrite",
            value="true",
        )
    if options.get_enum("merge-engine") == "first-row" and producer not in ("none", "lookup"):
        raise refuse("cannot be combined with 'merge-engine' = 'first-row'; use 'none' or 'lookup'")
    if options.get_bool("deletion-vectors.enabled"):
        if producer == "full-compaction":
            raise refuse("cannot be combined with 'deletion-vectors.enabled' = 'true'")
        if options.get_enum("merge-engine") == "first-row" and not options.get_bool("pk-clustering-override"):
            raise OptionError(
                "'deletion-vectors.enabled' cannot be combined with 'merge-engine' = 'first-row'",
                option="deletion-vectors.enabled",
                value="true",
            )
    if options.get_bool("table-read.sequence-number.enabled") and not schema.primary_keys:
        raise OptionError(
            "'table-read.sequence-number.enabled' needs a primary key", option="table-read.sequence-number.enabled"
        )


def _levels(schema: TableSchema, options: Options) -> None:
    if not schema.primary_keys:
        return
    for name, least, why in (
        ("num-sorted-run.compaction-trigger", 1, "there is no compaction of fewer runs"),
        ("num-levels", 2, "level 0 and at least one to compact to"),
    ):
        value = options.find_int(name)
        if value is not None and value < least:
            raise OptionError(
                f"option {name!r} is {value}; it must be at least {least}: {why}", option=name, value=str(value)
            )


def _retention(_schema: TableSchema, options: Options) -> None:
    for kind in ("snapshot", "changelog"):
        low_name, high_name = f"{kind}.num-retained.min", f"{kind}.num-retained.max"
        low, high = options.find_int(low_name), options.find_int(high_name)
        low = options.get_int("snapshot.num-retained.min") if low is None else low
        high = options.get_int("snapshot.num-retained.max") if high is None else high
        if low < 1:
            raise OptionError(f"option {low_name!r} is {low}; it must be at least 1", option=low_name, value=str(low))
        if low > high:
            raise OptionError(
                f"option {low_name!r} is {low}, more than {high_name!r}, {high}", option=low_name, value=str(low)
            )
    rows = options.get_int("target-file-row-num")
    if rows < 1:
        raise OptionError(f"'target-file-row-num' is {rows}; it must be at least 1", option="target-file-row-num")


def _row_tracking(schema: TableSchema, options: Options) -> None:
    name = "row-tracking.enabled"
    if options.get_bool(name):
        if schema.primary_keys:
            raise OptionError(f"{name!r} cannot be combined with a primary key", option=name, value="true")
        if options.get_int("bucket") != -1:
            raise OptionError(f"{name!r} needs 'bucket' = '-1'", option=name, value="true")
    elif options.get_bool("data-evolution.enabled"):
        raise OptionError("'data-evolution.enabled' needs 'row-tracking.enabled'", option="data-evolution.enabled")
    if options.find_str("vector.file.format") and not options.get_bool("data-evolution.enabled"):
        raise OptionError("'vector.file.format' needs 'data-evolution.enabled'", option="vector.file.format")


def _record_expiry(schema: TableSchema, options: Options) -> None:
    name = options.find_str("record-level.time-field")
    if name is None:
        if options.is_set("record-level.expire-time"):
            raise OptionError(
                "'record-level.expire-time' needs 'record-level.time-field', the column with the time of a row",
                option="record-level.expire-time",
            )
        return
    _refuse_unknown(schema, "option 'record-level.time-field'", (name,))
    data_type = schema.field(name).type
    if not isinstance(data_type, Atomic) or data_type.root not in _TIME_TYPES:
        raise SchemaError(
            f"'record-level.time-field' must be INT, BIGINT or a timestamp; {name!r} is {sql_type(data_type)}",
            fields=(name,),
        )


def _partition_names(schema: TableSchema, options: Options) -> None:
    """Check options that name partition keys; Java checks the pattern only when partitions expire, and fails then."""
    named = {}
    if options.get_bool("manifest-sort.enabled"):
        named["manifest-sort.partition-field"] = [options.find_str("manifest-sort.partition-field")]
    pattern = options.find_str("partition.timestamp-pattern") or ""
    keys = schema.partition_keys
    named["partition.timestamp-pattern"] = [
        name for name in re.findall(r"\$(\w+)", pattern) if not name.startswith(keys)
    ]  # fmt: skip
    for option, names in named.items():
        unknown = next((name for name in names if name and name not in keys), None)
        if unknown is not None:
            raise OptionError(
                f"option {option!r} names {unknown!r}, which is not a partition key{did_you_mean(unknown, keys)}; "
                f"the partition keys are {list(keys)}",
                option=option,
                value=options.find_str(option),
            )


def require_distinct_names(fields: Sequence[Field]) -> None:
    """Raises: SchemaError for columns, or fields of a ROW, with the same name."""
    _refuse_duplicates("columns", [field.name for field in fields])
    for field in fields:
        _refuse_nested_duplicates(field.type)


def _refuse_nested_duplicates(data_type: DataType) -> None:
    if isinstance(data_type, RowType):
        _refuse_duplicates("fields of a ROW", [field.name for field in data_type.fields])
    for child in children(data_type):
        _refuse_nested_duplicates(child)


def _refuse_duplicates(what: str, names: Sequence[str]) -> None:
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise SchemaError(f"{what} {list(names)} name {twice} more than once; keep one", fields=tuple(twice))


def _refuse_unknown(schema: TableSchema, what: str, names: Sequence[str]) -> None:
    unknown = [name for name in names if name not in schema.names]
    if unknown:
        hint = did_you_mean(unknown[0], schema.names)
        raise SchemaError(
            f"{what}: {unknown} are not columns{hint}; the columns are {list(schema.names)}", fields=tuple(unknown)
        )  # fmt: skip


_RULES = (
    _columns,
    _keys,
    check_bucket_key,
    check_bucket,
    _start,
    _field_options,
    _sequence,
    check_engine,
    _snapshot_ordering,
    _row_kind,
    _changelog_producer,
    _levels,
    _retention,
    _row_tracking,
    _blobs,
    check_incremental,
    _record_expiry,
    _partition_names,
    check_aggregates,
)
