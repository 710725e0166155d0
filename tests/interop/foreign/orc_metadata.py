"""Manifests and their lists as ORC files, as Java before 2.1 writes them where `manifest.format` says so, in other layouts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
from foreign.place import Place

Rewrite = Callable[[Place, pa.Table], tuple[pa.Table, dict[str, Any], str] | None]


def settings(place: Place, table: pa.Table):
    how = {"compression": place.draw.choice(["uncompressed", "snappy", "zlib", "zstd", "lz4"]), "stripe_size": place.draw.choice([1, 1 << 20])}
    return table, {**how, "batch_size": 1}, str(how)


def columns_shuffled(place: Place, table: pa.Table):
    names = table.column_names
    place.draw.shuffle(names)
    return table.select(names), {}, "columns in another order"


def column_more(place: Place, table: pa.Table):
    array = place.draw.choice([pa.array(range(len(table))), pa.array(["x"] * len(table)), pa.nulls(len(table), pa.int64())])
    return table.append_column("_NEW", array), {}, f"extra column of {array.type}"


def column_less(place: Place, table: pa.Table):
    name = place.draw.choice(table.column_names)
    return table.drop_columns([name]), {}, f"without {name}"


def rows_moved(place: Place, table: pa.Table):
    order = list(range(len(table)))
    place.draw.shuffle(order)
    return table.take(pa.array(order, pa.int64())), {}, f"rows in the order {order}"


def inner_less(place: Place, table: pa.Table):
    """The last fields of a struct are gone, as in older releases."""
    found = [name for name in table.column_names if pa.types.is_struct(table[name].type)]
    if not found:
        return None
    name = place.draw.choice(found)
    array = table[name].combine_chunks()
    count = place.draw.randint(1, min(6, array.type.num_fields - 1))
    kept = range(array.type.num_fields - count)
    fields = [array.type.field(i) for i in kept]
    made = pa.StructArray.from_arrays([array.field(i) for i in kept], fields=fields, mask=array.is_null())
    return table.set_column(table.column_names.index(name), name, made), {}, f"{name} without its last {count} fields"


def _changed(rewrite: Rewrite) -> Callable[[Place], str | None]:
    def change(place: Place) -> str | None:
        files = [path for path in sorted(place.path.glob("manifest/*")) if path.read_bytes()[:3] == b"ORC"]
        if not files:
            return None
        path = place.draw.choice(files)
        done = rewrite(place, orc.read_table(path))
        if done is None:
            return None
        table, how, about = done
        orc.write_table(table, path, **how)
        _settle(place, files)
        return f"{path.name}: {about}"

    change.__name__ = f"orc_metadata_{rewrite.__name__}"
    return change


def _settle(place: Place, files: list[Path]) -> None:
    """The sizes of manifests in their lists, and of lists in snapshots."""
    sizes = {path.name: path.stat().st_size for path in files}
    for path in files:
        table = orc.read_table(path)
        if path.name.startswith("manifest-list") and {"_FILE_NAME", "_FILE_SIZE"} <= set(table.column_names):
            now = [sizes.get(name, size) for name, size in zip(table["_FILE_NAME"].to_pylist(), table["_FILE_SIZE"].to_pylist(), strict=True)]
            at = table.column_names.index("_FILE_SIZE")
            orc.write_table(table.set_column(at, table.schema.field(at), pa.array(now, pa.int64())), path)
    place.settle_lists(files)


CHANGES = tuple(_changed(rewrite) for rewrite in (settings, columns_shuffled, column_more, column_less, rows_moved, inner_less))
