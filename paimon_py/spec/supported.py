"""The tables that paimon_py can read and write; all others are refused by name before a file is touched.

One row per feature: how to detect it, and whether tables that use it can be read and written. Rows are removed as
features are added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from paimon_py.errors import UnsupportedError
from paimon_py.spec.blobs import (
    PACKING_ENGINES,
    BlobPlace,
    blob_place,
    fields_apart,
    holds_blobs,
    is_blob,
    mentions_blobs,
    packed_fields,
)
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.engine_rules import sequence_groups, shared_members
from paimon_py.spec.file_indexes import KINDS, index_kinds
from paimon_py.spec.file_rules import (
    MERGED_ROWS,
    MERGED_ROWS_HINT,
    OTHER_FORMATS,
    READ_FORMATS,
    VECTOR_FORMATS,
    data_formats,
)
from paimon_py.spec.iceberg import iceberg_feature
from paimon_py.spec.key_indexes import SEARCH_KINDS, index_columns
from paimon_py.spec.option_names import FIELDS_PREFIX
from paimon_py.spec.options import Options
from paimon_py.spec.schema import ROW_KIND_COLUMN, TableSchema
from paimon_py.spec.type_text import children, contains, sql_type
from paimon_py.spec.types import Atomic, DataType, MapType, MultisetType, Root, RowType, VectorType
from paimon_py.spec.vector_files import vectors_apart

Detect = Callable[[TableSchema, Options], str | None]

_OTHER_TYPES = frozenset((Root.GEOMETRY, Root.GEOGRAPHY))


class Feature(msgspec.Struct, frozen=True):
    """A feature with restrictions. `detect` returns its name for a table that uses it, else None.

    `compactable`: files can be compacted, even if rows cannot be written. `scannable`: rows of a state can be scanned,
    even if nothing else can be read.
    """

    detect: Detect
    readable: bool = False
    writable: bool = False
    compactable: bool = False
    scannable: bool = False
    hint: str = ""


def check_readable(schema: TableSchema) -> None:
    """Refuse tables whose rows paimon_py cannot read exactly.

    Raises:
        UnsupportedError: the message names the first such feature.
    """
    _require(schema, "read", lambda feature: feature.readable)


def check_scannable(schema: TableSchema) -> None:
    """Refuse tables whose states paimon_py cannot scan exactly.

    Raises:
        UnsupportedError: the message names the first such feature.
    """
    _require(schema, "read", lambda feature: feature.readable or feature.scannable)


def check_writable(schema: TableSchema) -> None:
    """Refuse tables that paimon_py cannot write or overwrite correctly.

    Raises:
        UnsupportedError: the message names the first such feature.
    """
    _require(schema, "write", lambda feature: feature.writable)


def check_compactable(schema: TableSchema) -> None:
    """Refuse tables that paimon_py cannot compact correctly.

    Raises:
        UnsupportedError: the message names the first such feature.
    """
    _require(schema, "compact", lambda feature: feature.writable or feature.compactable)


def check_taggable(schema: TableSchema) -> None:
    """Refuse to change tags of a table whose options name Java classes as tag callbacks.

    Raises:
        UnsupportedError: the message names the option.
    """
    if Options(schema.options).find_str("tag.callbacks"):
        raise UnsupportedError(
            "paimon_py cannot change tags of tables with tag.callbacks: the option names classes of Java, which are"
            " called after each change. Remove it, and let catalog.register_observer(f) call a function of Python",
            feature="tag.callbacks",
        )


def check_movable(schema: TableSchema, verb: str) -> None:
    """Refuse to move or copy the files of a table whose rows contain the paths of its packs.

    Raises: UnsupportedError
    """
    if fields := packed_fields(schema):
        raise UnsupportedError(
            f"paimon_py cannot {verb} tables with BLOBs under a primary key: the rows contain the full paths of the"
            f" bytes of {fields[0].name!r}; write the rows to a new table",
            feature="BLOBs under a primary key",
        )


def check_same_features(before: TableSchema, after: TableSchema) -> None:
    """Refuse a schema change that introduces a feature with unknown rules.

    Raises:
        UnsupportedError: the message names it.
    """
    known = {name for _, name in _used_features(before)}
    for feature, name in _used_features(after):
        if not feature.readable and name not in known:
            raise _refusal("alter", name, feature)


def _require(schema: TableSchema, verb: str, permits: Callable[[Feature], bool]) -> None:
    for feature, name in _used_features(schema):
        if not permits(feature):
            raise _refusal(verb, name, feature)


def _used_features(schema: TableSchema) -> Iterator[tuple[Feature, str]]:
    options = Options(schema.options)
    for feature in _FEATURES:
        name = feature.detect(schema, options)
        if name is not None:
            yield feature, name


def _refusal(verb: str, name: str, feature: Feature) -> UnsupportedError:
    hint = f"; {feature.hint}" if feature.hint else ""
    return UnsupportedError(f"paimon_py cannot {verb} tables with {name} yet{hint}", feature=name)


def _switched_on(name: str) -> Detect:
    return lambda _, options: name if options.get_bool(name) else None


def _detect_option(name: str) -> Detect:
    return lambda _, options: name if options.find_str(name) else None


def _other_than(name: str, *values: str) -> Detect:
    def detect(_: TableSchema, options: Options) -> str | None:
        value = options.get_enum(name)
        return None if value in values else f"{name}={value}"

    return detect


def _in_text(name: str, *values: str) -> Detect:
    """Detects an option outside the option tables that is set to any other value than these."""

    def detect(_: TableSchema, options: Options) -> str | None:
        value = options.get(name)
        return None if value is None or value.lower() in values else f"{name}={value}"

    return detect


def _shared_groups(schema: TableSchema, options: Options) -> str | None:
    engine = options.get_enum("merge-engine")
    shared = schema.primary_keys and engine == "partial-update" and shared_members(sequence_groups(options))
    return "sequence groups with common columns" if shared else None


def _sequence_type(schema: TableSchema, options: Options) -> str | None:
    """Detects sequence fields of types that paimon_py cannot order."""
    for name in options.get_list("sequence.field") if schema.primary_keys else ():
        if name in schema.names and (not isinstance(kind := schema.field(name).type, Atomic) or _is_variant(kind)):
            return f"a sequence.field of type {sql_type(schema.field(name).type)}"
    return None


def _kept_twice(schema: TableSchema, options: Options) -> str | None:
    """Detects that a key which moves to another partition stays in the old one, since deletes are ignored."""
    if bucket_mode(schema) is not BucketMode.CROSS_PARTITION or options.get_enum("merge-engine") != "deduplicate":
        return None
    ignores = options.get_bool("ignore-delete")
    return "ignore-delete and keys that move between partitions" if ignores else None


def _format_of(names: tuple[str, ...]) -> Detect:
    def detect(_schema: TableSchema, options: Options) -> str | None:
        return next((f"{option}={name}" for name, option in data_formats(options).items() if name in names), None)

    return detect


def _merged_rows(schema: TableSchema, options: Options) -> str | None:
    """Detects a format whose rows Java merges wrongly, so that its compactions write wrong rows."""
    return MERGED_ROWS if schema.primary_keys and "row" in data_formats(options) else None


def _packed_texts(_schema: TableSchema, options: Options) -> str | None:
    """Detects compressed files of lines of text, which Java writes and reads back as other texts."""
    packed = "text" in data_formats(options) and options.get_str("file.compression").lower() != "none"
    return "compressed files of the format text" if packed else None


def _type(schema: TableSchema, _options: Options) -> str | None:
    for field in schema.fields:
        if contains(field.type, _is_other_type):
            return next(f"{name} type" for name in _type_names(field.type))
    return None


def _is_other_type(data_type: DataType) -> bool:
    return isinstance(data_type, Atomic) and data_type.root in _OTHER_TYPES


def _hidden_vector(schema: TableSchema, _options: Options) -> str | None:
    """Detects vectors that Java cannot write: inside arrays and maps."""
    for field in schema.fields:
        if contains(field.type, lambda kind: not isinstance(kind, RowType) and any(map(_is_vector, children(kind)))):
            return "VECTOR inside ARRAY, MAP or MULTISET"
    return None


def _hidden_blob(schema: TableSchema, _options: Options) -> str | None:
    """Detects BLOBs where Java does not allow them: inside a ROW, below an ARRAY of something else, as keys."""
    for field in schema.fields:
        if mentions_blobs(field.type) and not holds_blobs(field.type):
            return f"BLOB inside {sql_type(field.type)}"
    return None


def _blob_write(schema: TableSchema, _options: Options) -> str | None:
    """Detects BLOB columns that can only be read: lists of references or of views."""
    for field in schema.fields:
        if blob_place(schema, field) in (BlobPlace.REFERENCE, BlobPlace.VIEW) and not is_blob(field.type):
            return f"BLOB column {field.name!r} of lists of references"
    return None


def _packed_blobs(schema: TableSchema, options: Options) -> str | None:
    """Detects packs of BLOBs beside options with which Java writes none."""
    if not packed_fields(schema):
        return None
    producer, engine = options.get_enum("changelog-producer"), options.get_enum("merge-engine")
    if engine not in PACKING_ENGINES:
        return f"BLOBs and merge-engine={engine}"
    if producer != "none":
        return f"BLOBs and changelog-producer={producer}"
    return "BLOBs and data-file.external-paths" if options.is_set("data-file.external-paths") else None


def _unnamed_partitions(schema: TableSchema, options: Options) -> str | None:
    """Detects partition keys whose values have no name as a directory, or another one in each time zone."""
    for field in schema.partition_fields:
        root = field.type.root if isinstance(field.type, Atomic) else None
        if root in (Root.BINARY, Root.VARBINARY):
            return f"{sql_type(field.type)} partition key {field.name!r}"
        if root is Root.TIMESTAMP_LTZ and not options.get_bool("partition.legacy-name"):
            return f"TIMESTAMP WITH LOCAL TIME ZONE partition key {field.name!r} and partition.legacy-name=false"
    return None


def _lone_blobs(schema: TableSchema, options: Options) -> str | None:
    """Detects BLOBs in separate files in tables that do not support such files."""
    if options.get_bool("data-evolution.enabled"):
        return None
    return next((f"BLOB column {field.name!r} without data-evolution.enabled" for field in fields_apart(schema)), None)


def _vector_files(*formats: str) -> Detect:
    """Detects files of vectors in other formats than these."""

    def detect(_schema: TableSchema, options: Options) -> str | None:
        word = (options.find_str("vector.file.format") or "parquet").lower()
        return None if word in formats else f"vector.file.format={word}"

    return detect


def _only_vectors(schema: TableSchema, _options: Options) -> str | None:
    """Detects rows that no ordinary file would contain, because all columns are stored in separate files."""
    away = {*vectors_apart(schema), *fields_apart(schema)}
    alone = len(away) == len(schema.fields) and vectors_apart(schema)
    return "vector.file.format and no other column" if alone else None


def _variant_key(schema: TableSchema, _options: Options) -> str | None:
    """Detects variants that Java writes but cannot read."""

    def has_keys(kind: DataType) -> bool:
        return isinstance(kind, (MapType, MultisetType)) and _is_variant(children(kind)[0])

    found = any(contains(field.type, has_keys) for field in schema.fields)
    return "VARIANT as key of MAP or MULTISET" if found else None


def _bucket_key(schema: TableSchema, options: Options) -> str | None:
    named = [field for field in schema.fields if field.name in options.get_list("bucket-key")]
    kinds = {"VECTOR": _is_vector, "VARIANT": _is_variant}
    found = (name for name, is_kind in kinds.items() if any(contains(field.type, is_kind) for field in named))
    return next((f"{name} in bucket-key" for name in found), None)


def _is_vector(data_type: DataType) -> bool:
    return isinstance(data_type, VectorType)


def _is_variant(data_type: DataType) -> bool:
    return isinstance(data_type, Atomic) and data_type.root is Root.VARIANT


def _type_names(data_type: DataType) -> list[str]:
    found: list[str] = []

    def look(inner: DataType) -> bool:
        if _is_other_type(inner):
            assert isinstance(inner, Atomic)
            found.append(inner.root.value)
        return False

    contains(data_type, look)
    return found


def _shredded_map(_schema: TableSchema, options: Options) -> str | None:
    for name, value in options.items():
        if name.startswith(FIELDS_PREFIX) and name.endswith(".map.storage-layout") and value.lower() != "default":
            return f"map.storage-layout={value}"
    return None


def _branch(_schema: TableSchema, options: Options) -> str | None:
    return None if options.get_str("branch") == "main" else "branch"


def _index_columns(_schema: TableSchema, options: Options) -> str | None:
    return index_columns(options, SEARCH_KINDS)


def _file_index(_schema: TableSchema, options: Options) -> str | None:
    return next((f"file-index.{kind}" for kind in index_kinds(options) if kind not in KINDS), None)


def _encryption(_schema: TableSchema, options: Options) -> str | None:
    return next((name for name in options if name.startswith("encryption.")), None)


def _row_kind_column(schema: TableSchema, _options: Options) -> str | None:
    return f"a column called {ROW_KIND_COLUMN}" if ROW_KIND_COLUMN in schema.names else None


_FEATURES = (
    Feature(_other_than("type", "table")),
    Feature(_type),
    Feature(_hidden_vector),
    Feature(_variant_key),
    Feature(_bucket_key),
    Feature(_format_of(OTHER_FORMATS)),
    Feature(_merged_rows, hint=MERGED_ROWS_HINT),
    Feature(_packed_texts, hint="Java 2.0 does not unpack them; set 'file.compression' = 'none'"),
    Feature(_format_of(READ_FORMATS), readable=True),
    Feature(_shared_groups, hint="which of the groups Java follows is not defined; give every column to one of them"),
    Feature(_sequence_type),
    Feature(_switched_on("data-evolution.enabled"), readable=True, writable=True),
    Feature(_vector_files(*VECTOR_FORMATS)),
    Feature(_only_vectors, readable=True),
    Feature(_hidden_blob),
    Feature(_lone_blobs),
    Feature(_blob_write, readable=True),
    Feature(_packed_blobs, readable=True),
    Feature(_in_text("video-frame-field")),
    Feature(_switched_on("pk-clustering-override"), readable=True),
    Feature(_switched_on("query-auth.enabled")),
    Feature(_encryption),
    Feature(_branch),
    Feature(
        _switched_on("chain-table.enabled"), scannable=True,
        hint="scan returns the rows of their latest state, and those of each branch",
    ),
    Feature(_shredded_map, readable=True),
    Feature(_in_text("manifest.format", "avro", "orc")),
    Feature(_kept_twice, readable=True, hint="drop the option: rows of the old partition must be deleted"),
    Feature(
        _unnamed_partitions, readable=True,
        hint="its values have no name as a directory that readers agree on; partition by a STRING or DATE column",
    ),
    Feature(_index_columns, readable=True),
    Feature(_file_index, readable=True),
    Feature(iceberg_feature, readable=True),
    Feature(
        _detect_option("commit.callbacks"), readable=True,
        hint="the option names classes of Java, which are called after each commit: remove it, and let"
        " catalog.register_observer(f) call a function of Python",
    ),
    Feature(_row_kind_column, readable=True),
)
