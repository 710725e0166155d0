"""Parquet and ORC files with the same rows as other writers lay them out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
from foreign import avro_bytes
from foreign.avro_bytes import Branch, Style
from foreign.place import Place

Rewrite = Callable[[Place, pa.Table], tuple[pa.Table, dict[str, Any], str] | None]
KEYS = ("_KEY_", "_SEQUENCE_NUMBER", "_VALUE_KIND")


def _as_is(place: Place, table: pa.Table, **how: Any) -> tuple[pa.Table, dict[str, Any], str]:
    return table, how, str(how)


def compression(place: Place, table: pa.Table):
    name = place.draw.choice(["none", "snappy", "gzip", "zstd", "lz4", "brotli"])
    return _as_is(place, table, compression=name)


def pages(place: Place, table: pa.Table):
    return _as_is(
        place, table, data_page_version=place.draw.choice(["1.0", "2.0"]), data_page_size=place.draw.choice([256, 1 << 20]),
        use_dictionary=place.draw.choice([True, False]), write_page_index=place.draw.choice([True, False]),
        write_page_checksum=place.draw.choice([True, False]), compression=place.draw.choice(["none", "snappy", "zstd"]),
    )  # fmt: skip


def version(place: Place, table: pa.Table):
    return _as_is(place, table, version=place.draw.choice(["1.0", "2.4", "2.6"]), store_schema=place.draw.choice([True, False]))


def groups(place: Place, table: pa.Table):
    return _as_is(place, table, row_group_size=place.draw.choice([1, 2, 3]), write_statistics=place.draw.choice([True, False, [table.column_names[0]]]))


def encodings(place: Place, table: pa.Table):
    found = {}
    for field in table.schema:
        choices = {
            pa.int32(): ["PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"], pa.int64(): ["PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"],
            pa.string(): ["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"], pa.binary(): ["PLAIN", "DELTA_BYTE_ARRAY"],
            pa.float64(): ["PLAIN", "BYTE_STREAM_SPLIT"], pa.float32(): ["PLAIN", "BYTE_STREAM_SPLIT"], pa.bool_(): ["PLAIN", "RLE"],
        }.get(field.type)  # fmt: skip
        if choices:
            found[field.name] = place.draw.choice(choices)
    return _as_is(place, table, column_encoding=found, use_dictionary=False, data_page_version=place.draw.choice(["1.0", "2.0"]))


def timestamps(place: Place, table: pa.Table):
    how = place.draw.choice(
        [{"coerce_timestamps": "ms", "allow_truncated_timestamps": True}, {"coerce_timestamps": "us", "allow_truncated_timestamps": True},
         {"use_deprecated_int96_timestamps": True}]
    )  # fmt: skip
    return None if not any(pa.types.is_timestamp(field.type) for field in table.schema) else _as_is(place, table, **how)


def timestamp_units(place: Place, table: pa.Table):
    unit, zone = place.draw.choice(["s", "ms", "us", "ns"]), place.draw.choice([None, "UTC", "keep"])
    fields, found = [], False
    for field in table.schema:
        if pa.types.is_timestamp(field.type):
            found = True
            field = field.with_type(pa.timestamp(unit, field.type.tz if zone == "keep" else zone))
        fields.append(field)
    if not found:
        return None
    try:
        return table.cast(pa.schema(fields), safe=False), {}, f"timestamps in {unit} {zone}"
    except pa.ArrowInvalid:
        return None


def required(place: Place, table: pa.Table):
    """Columns without nulls are REQUIRED."""
    fields = [field.with_nullable(False) if not table[field.name].null_count and place.draw.random() < 0.7 else field for field in table.schema]
    return pa.Table.from_arrays(table.columns, schema=pa.schema(fields)), {"store_schema": place.draw.choice([True, False])}, "required columns"


def optional(place: Place, table: pa.Table):
    fields = [field.with_nullable(True) for field in table.schema]
    return pa.Table.from_arrays(table.columns, schema=pa.schema(fields)), {"store_schema": place.draw.choice([True, False])}, "optional columns"


def columns_shuffled(place: Place, table: pa.Table):
    names = table.column_names
    place.draw.shuffle(names)
    return table.select(names), {}, f"columns {names}"


def column_more(place: Place, table: pa.Table):
    array = place.draw.choice([pa.array(range(len(table))), pa.array(["x"] * len(table)), pa.array([[1, None]] * len(table)), pa.nulls(len(table))])
    name = place.draw.choice(["extra", "_partition", "__index_level_0__", "a b"])
    return table.add_column(place.draw.randrange(table.num_columns + 1), name, array), {}, f"extra column {name} of {array.type}"


def column_less(place: Place, table: pa.Table):
    names = [name for name in table.column_names if not name.startswith(KEYS)]
    name = place.draw.choice(names)
    return (table.drop_columns([name]), {}, f"without column {name}") if table.num_columns > 1 else None


def ids(place: Place, table: pa.Table):
    """Field ids that are absent, or other ones."""
    how = place.draw.choice(["absent", "others", "equal"])
    fields = []
    for number, field in enumerate(table.schema):
        told = None if how == "absent" else {"PARQUET:field_id": str(number + 500 if how == "others" else 7)}
        fields.append(field.with_metadata(told))
    bare = pa.schema(fields, metadata=None)
    if how == "absent":
        table = table.cast(pa.schema([_bare(field) for field in fields]))
        return table, {}, "no field ids"
    return pa.Table.from_arrays(table.columns, schema=bare), {}, f"field ids {how}"


def _bare(field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_bare(kind.field(i)) for i in range(kind.num_fields)])
    elif pa.types.is_map(kind):
        kind = pa.map_(_bare(kind.key_field), _bare(kind.item_field))
    elif pa.types.is_list(kind):
        kind = pa.list_(_bare(kind.value_field))
    return pa.field(field.name, kind, field.nullable)


def element_names(place: Place, table: pa.Table):
    name = place.draw.choice(["item", "array", "bag", "element", "list"])

    def renamed(kind: pa.DataType) -> pa.DataType:
        if pa.types.is_list(kind):
            return pa.list_(pa.field(name, renamed(kind.value_type), kind.value_field.nullable))
        if pa.types.is_struct(kind):
            return pa.struct([kind.field(i).with_type(renamed(kind.field(i).type)) for i in range(kind.num_fields)])
        return kind

    fields = [field.with_type(renamed(field.type)) for field in table.schema]
    if all(field.type.equals(other.type) for field, other in zip(fields, table.schema)) and name != "list":
        pass
    return table.cast(pa.schema(fields)), {"use_compliant_nested_type": place.draw.choice([True, False])}, f"elements called {name}"


def wider(place: Place, table: pa.Table):
    """One column in another type of the same values."""
    others = {
        pa.int32(): [pa.int64(), pa.int16(), pa.uint32(), pa.float64()], pa.int64(): [pa.int32(), pa.uint64(), pa.decimal128(20, 0)],
        pa.int8(): [pa.int32(), pa.int16(), pa.uint8()], pa.int16(): [pa.int32(), pa.int64()], pa.float32(): [pa.float64()], pa.float64(): [pa.float32()],
        pa.string(): [pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string()), pa.string_view()],
        pa.binary(): [pa.large_binary()], pa.date32(): [pa.date64(), pa.int32(), pa.timestamp("us")], pa.bool_(): [pa.int8()],
    }  # fmt: skip
    found = [field for field in table.schema if field.type in others or pa.types.is_decimal(field.type) or pa.types.is_time(field.type)]
    if not found:
        return None
    field = place.draw.choice(found)
    if pa.types.is_decimal(field.type):
        kind = pa.decimal128(38, field.type.scale) if place.draw.random() < 0.5 else pa.decimal256(40, field.type.scale)
    elif pa.types.is_time(field.type):
        kind = place.draw.choice([pa.time64("us"), pa.time64("ns"), pa.int32()])
    else:
        kind = place.draw.choice(others[field.type])
    try:
        index = table.column_names.index(field.name)
        return table.set_column(index, field.with_type(kind), table[field.name].cast(kind)), {}, f"{field.name} stored as {kind}"
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def decimals(place: Place, table: pa.Table):
    return _as_is(place, table, store_decimal_as_integer=True) if any(pa.types.is_decimal(field.type) for field in table.schema) else None


def metadata(place: Place, table: pa.Table):
    told = place.draw.choice([None, {b"org.apache.spark.version": b"3.5"}, {b"pandas": b"{}"}, {b"a" * 300: b"\xff" * 300}, {b"": b""}])
    return table.replace_schema_metadata(told), {}, f"metadata {str(told)[:60]}"


def case_of_names(place: Place, table: pa.Table):
    name = place.draw.choice(table.column_names)
    return table.rename_columns([each.upper() if each == name else each for each in table.column_names]), {}, f"{name} in capitals"


def dictionary_columns(place: Place, table: pa.Table):
    """Texts as dictionaries by the Arrow schema."""
    fields = [field.with_type(pa.dictionary(pa.int32(), pa.string())) if field.type == pa.string() else field for field in table.schema]
    return (table.cast(pa.schema(fields)), {}, "dictionaries") if pa.string() in table.schema.types else None


def no_rows_in_front(place: Place, table: pa.Table):
    return table, {"empty_first": True}, "an empty row group first"


PARQUET: tuple[Rewrite, ...] = (
    compression, pages, version, groups, encodings, timestamps, timestamp_units, required, optional, columns_shuffled, column_more,
    column_less, ids, element_names, wider, decimals, metadata, case_of_names, dictionary_columns, no_rows_in_front,
)  # fmt: skip


def orc_settings(place: Place, table: pa.Table):
    return _as_is(
        place, table, compression=place.draw.choice(["uncompressed", "snappy", "zlib", "zstd", "lz4"]), file_version=place.draw.choice(["0.11", "0.12"]),
        stripe_size=place.draw.choice([1, 1 << 20]), row_index_stride=place.draw.choice([0, 1, 1000]) or 10000, batch_size=place.draw.choice([1, 1024]),
        dictionary_key_size_threshold=place.draw.choice([0.0, 1.0]), compression_block_size=place.draw.choice([1024, 65536]),
        bloom_filter_columns=place.draw.choice([None, [0]]), padding_tolerance=place.draw.choice([0.0, 0.5]),
    )  # fmt: skip


ORC: tuple[Rewrite, ...] = (orc_settings, columns_shuffled, column_more, column_less, wider, case_of_names, timestamp_units)


def _parquet_by(name: str, write: Callable[[Place, pa.Table, Path], None]) -> Callable[[Place], str | None]:
    """A change that lets another library write the files."""

    def changed(place: Place) -> str | None:
        paths = [path for path in place.files("data") if path.suffix == ".parquet"]
        if not paths:
            return None
        for path in paths:
            try:
                write(place, pq.read_table(path), path)
            except (pa.ArrowException, polars.exceptions.PolarsError, duckdb.Error):
                return None
        place.settle()
        return f"written by {name}"

    changed.__name__ = f"parquet_by_{name}"
    return changed


def _polars(place: Place, table: pa.Table, path: Path) -> None:
    polars.from_arrow(table).write_parquet(
        path, compression=place.draw.choice(["zstd", "snappy", "uncompressed"]), row_group_size=place.draw.choice([None, 2]),
        statistics=place.draw.choice([True, False]),
    )  # fmt: skip


def _duckdb(place: Place, table: pa.Table, path: Path) -> None:
    with duckdb.connect() as connection:
        connection.register("given", table)
        codec = place.draw.choice(["zstd", "snappy", "uncompressed", "gzip"])
        style = place.draw.choice(["V1", "V2"])
        connection.execute(f"copy given to '{path}' (format parquet, compression {codec}, parquet_version {style})")


def of(suffix: str, rewrite: Rewrite) -> Callable[[Place], str | None]:
    """A change of one data file, or all of them."""

    def changed(place: Place) -> str | None:
        paths = [path for path in place.files("data") if path.suffix == suffix]
        if not paths:
            return None
        about = None
        for path in paths if place.draw.random() < 0.5 else [place.draw.choice(paths)]:
            try:
                table = orc.read_table(path) if suffix == ".orc" else pq.read_table(path, use_threads=False)
            except pa.ArrowInvalid:  # times that Arrow's reader of ORC cannot hold
                return None
            done = rewrite(place, table)
            if done is None:
                return None
            table, how, about = done
            if rewrite is column_less and place.draw.random() < 0.5:
                forget_counts(place, path.name)
            try:
                _write(path, table, how)
            except (pa.ArrowException, OSError, ValueError, TypeError):
                return None
        place.settle()
        return about

    changed.__name__ = f"{suffix[1:]}_{rewrite.__name__}"
    return changed


def forget_counts(place: Place, name: str) -> None:
    """No statistics of values in the entries of a data file, as of writers that keep none."""
    for path in place.files("manifest"):
        container = avro_bytes.read(path.read_bytes())
        for record in container.records:
            file = record["_FILE"]
            if file["_FILE_NAME"] == name and "_VALUE_STATS_COLS" in file:
                file["_VALUE_STATS"] = {"_MIN_VALUES": bytes(12), "_MAX_VALUES": bytes(12), "_NULL_COUNTS": Branch(1, [])}
                file["_VALUE_STATS_COLS"] = Branch(1, [])
        place.keep(path, container.schema, container.records, Style(container.codec))


def _write(path: Path, table: pa.Table, how: dict[str, Any]) -> None:
    if path.suffix == ".orc":
        orc.write_table(table, path, **how)
        return
    how = dict(how)
    if how.pop("empty_first", False):
        with pq.ParquetWriter(path, table.schema) as writer:
            writer.write_table(table.slice(0, 0))
            writer.write_table(table)
            writer.write_table(table.slice(0, 0))
        return
    pq.write_table(table, path, **how)


CHANGES = (
    *(of(".parquet", rewrite) for rewrite in PARQUET), *(of(".orc", rewrite) for rewrite in ORC),
    _parquet_by("polars", _polars), _parquet_by("duckdb", _duckdb),
)  # fmt: skip
