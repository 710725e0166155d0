"""Rules for bucket options: those that Java checks, and those whose violation makes Java fail when rows are written.

Source: format.md §7; Java `SchemaValidation.validateBucket`, `BucketFunction`, `HashBucketAssigner`, release 2.0.
"""

from __future__ import annotations

from paimon_py.errors import OptionError, SchemaError
from paimon_py.spec.layout import POSTPONE_BUCKET
from paimon_py.spec.option_names import did_you_mean
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.type_text import sql_type
from paimon_py.spec.types import Atomic, DataType, Root

HIVE_TYPES = frozenset(
    (
        Root.BOOLEAN, Root.TINYINT, Root.SMALLINT, Root.INT, Root.BIGINT, Root.FLOAT, Root.DOUBLE, Root.DATE, Root.TIME,
        Root.CHAR, Root.VARCHAR, Root.BINARY, Root.VARBINARY, Root.DECIMAL,
    )
)  # fmt: skip
"""The bucket key types that the bucket function `hive` can hash."""

_DYNAMIC = (
    "dynamic-bucket.target-row-num",
    "dynamic-bucket.max-buckets",
    "dynamic-bucket.initial-buckets",
    "dynamic-bucket.assigner-parallelism",
)
_POSTPONED = (
    "postpone.default-bucket-num",
    "postpone.target-row-num-per-bucket",
    "postpone.target-size-per-bucket",
)


def check_bucket_key(schema: TableSchema, options: Options) -> None:
    """Refuse bucket keys that are missing columns or cannot be bucket keys.

    Raises: OptionError
    """
    text = options.find_str("bucket-key")
    if text is None or not text.strip():
        return
    keys = tuple(text.split(","))

    def refuse(reason: str) -> OptionError:
        return OptionError(f"option 'bucket-key' = {text!r} {reason}", option="bucket-key", value=text)

    missing = [key for key in keys if key not in schema.names]
    if missing:
        blanks = any(key != key.strip() for key in missing)
        hint = " (no blanks around commas)" if blanks else did_you_mean(missing[0], schema.names)
        raise refuse(f"names {missing}, which are not columns{hint}; the columns are {list(schema.names)}")
    if len(set(keys)) < len(keys):
        raise refuse("names a column twice")
    if set(keys) & set(schema.partition_keys):
        raise refuse(f"must not name partition keys {list(schema.partition_keys)}")
    if schema.primary_keys and not set(keys) <= set(schema.primary_keys):
        raise refuse(f"must name only columns of the primary key {list(schema.primary_keys)}")


def check_bucket(schema: TableSchema, options: Options) -> None:
    """Refuse invalid numbers of buckets, and options that contradict the bucket mode.

    Raises: OptionError, SchemaError
    """
    bucket = options.get_int("bucket")
    if bucket == -1:
        if options.find_str("bucket-key") is not None:
            raise OptionError("'bucket-key' needs a fixed number of buckets, 'bucket' >= 1", option="bucket-key")
        if not schema.primary_keys and options.is_set("full-compaction.delta-commits"):
            raise OptionError(
                "'full-compaction.delta-commits' needs a primary key or a fixed number of buckets",
                option="full-compaction.delta-commits",
            )
        if schema.primary_keys:
            _check_counts(options, _DYNAMIC)
        return
    if bucket < 1 and not (bucket == POSTPONE_BUCKET and schema.primary_keys):
        raise OptionError(
            f"option 'bucket' is {bucket}; it must be -1, at least 1, or -2 with a primary key",
            option="bucket",
            value=str(bucket),
        )
    if not schema.bucket_keys and not (bucket == 1 and schema.version <= 1):
        raise OptionError(
            f"a table with {bucket} buckets and no primary key needs the option 'bucket-key'", option="bucket-key"
        )
    if bucket == POSTPONE_BUCKET:
        _check_counts(options, _POSTPONED)
    for name in schema.bucket_keys:
        data_type = schema.field(name).type
        if not isinstance(data_type, Atomic):
            raise SchemaError(f"column {name!r} of type {sql_type(data_type)} cannot be a bucket key", fields=(name,))
    _check_function(schema, options.get_enum("bucket-function.type"))


def _check_function(schema: TableSchema, function: str) -> None:
    types = [schema.field(name).type for name in schema.bucket_keys]

    def refuse(reason: str) -> OptionError:
        message = f"'bucket-function.type' = {function!r} {reason}"
        return OptionError(message, option="bucket-function.type", value=function)

    if function == "mod" and (len(types) != 1 or not _is_one_of(types[0], frozenset((Root.INT, Root.BIGINT)))):
        raise refuse(f"needs one bucket key of type INT or BIGINT, not {list(schema.bucket_keys)}")
    if function == "hive":
        for name, data_type in zip(schema.bucket_keys, types, strict=True):
            if not _is_one_of(data_type, HIVE_TYPES):
                raise refuse(f"has no hash of {sql_type(data_type)}, the type of the bucket key {name!r}")


def _is_one_of(data_type: DataType, roots: frozenset[Root]) -> bool:
    return isinstance(data_type, Atomic) and data_type.root in roots


def _check_counts(options: Options, names: tuple[str, ...]) -> None:
    """Refuse an option that is set to less than 1; −1 as the maximum number of buckets means no limit."""
    for name in names:
        value = options.get_memory(name) if name.endswith("-size-per-bucket") else options.find_int(name)
        if value is not None and value < 1 and not (name == "dynamic-bucket.max-buckets" and value == -1):
            raise OptionError(f"option {name!r} is {value}; it must be at least 1", option=name, value=str(value))
