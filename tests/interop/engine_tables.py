"""Tables of many shapes that live engines read and write, and what the engines are known not to do.

Every shape is filled by us in some commits. An engine reads it in several ways, adds a row that it copies from one that is
there, and reads again; we read what it added, add rows of our own, compact, and the engine reads once more.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import json
import os
import pathlib
import re
from collections.abc import Callable

import pyarrow as pa
from values import arrow_rows

from paimon_py import AddColumn, Catalog, DropColumn, RenameColumn, Schema, Table, UpdateColumnType

FLAT = [["k", "BIGINT NOT NULL"], ["v", "STRING"], ["n", "DECIMAL(24, 4)"], ["ts", "TIMESTAMP(6)"], ["dt", "DATE"], ["i", "INT"], ["f", "DOUBLE"]]
_ROW = {"type": "ROW", "fields": [{"id": 20, "name": "x", "type": "INT"}, {"id": 21, "name": "y", "type": "STRING"}]}
NESTED = [["k", "BIGINT NOT NULL"], ["arr", {"type": "ARRAY", "element": "INT"}], ["rw", _ROW], ["mp", {"type": "MAP", "key": "STRING NOT NULL", "value": "INT"}]]
OLD = [["k", "BIGINT NOT NULL"], ["s", "TIMESTAMP(3)"], ["ts", "TIMESTAMP(6)"]]
INSTANTS = [["k", "BIGINT NOT NULL"], ["z", "TIMESTAMP(6) WITH LOCAL TIME ZONE"]]
FORMATS = ("parquet", "orc", "avro")
OLD_TIMES = ["1969-12-31T23:59:58.500001", "1960-02-29T12:00:00.123456", "1969-12-31T23:59:58", "1900-01-01T00:00:00.250", "1970-01-01T00:00:00.000001",
             "1969-12-31T23:59:57.000999", "2024-07-01T00:00:00.999999", "1582-12-31T23:59:59.75", "0001-01-01T00:00:00.123456"]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Shape:
    """One table: `fill` writes to it what engines find."""

    name: str
    columns: list
    primary_key: tuple = ()
    partition_by: tuple = ()
    options: dict = dataclasses.field(default_factory=dict)
    fill: Callable[[Table, list], None] = lambda table, columns: fill(table, columns)
    writable: bool = True

    @property
    def final(self) -> list:
        """The columns after `fill`."""
        return EVOLVED if self.name.startswith("evolved") else self.columns


def value(name: str, k: int):
    made = {
        "k": k, "v": f"é{k}", "n": f"{k - 3}.2500", "ts": f"2024-01-{1 + k % 28:02}T03:04:05.{k:06}", "dt": f"19{60 + k % 40}-05-14", "i": k * 7 - 20,
        "f": k / 4, "p": f"a b/{k % 3}", "arr": [k, None], "rw": {"x": k, "y": None}, "mp": [["a", k], ["b", None]],
        "w": k * 10**10, "s": OLD_TIMES[k % len(OLD_TIMES)][:23], "z": OLD_TIMES[k % 8],
    }[name]  # fmt: skip
    return None if name not in ("k", "p") and (k + len(name)) % 7 == 6 else made


def old_value(name: str, k: int):
    return OLD_TIMES[k % len(OLD_TIMES)] if name == "ts" else value(name, k)


def rows(columns: list, ks, **changed) -> list[dict]:
    draw = old_value if columns is OLD else value
    made = []
    for k in ks:
        row = {name: draw(name, k) for name, _ in columns}
        made.append(row | {name: new for name, new in changed.items() if name in row or name == "_kind"})
    return made


def write(table: Table, columns: list, made: list[dict]) -> None:
    table.write_arrow(arrow_rows(table.schema, columns, made, kinds=bool(table.schema.primary_keys)))


def fill(table: Table, columns: list) -> None:
    """Two commits; keyed tables get updates and deletes in the second one, and stay uncompacted if they may."""
    write(table, columns, rows(columns, range(12)))
    if not table.schema.primary_keys:
        write(table, columns, rows(columns, range(12, 20)))
        return
    write(table, columns, [*rows(columns, range(9, 14), v="again", i=1), *deletes(table, columns)])


def deletes(table: Table, columns: list) -> list[dict]:
    return [] if table.options.get("merge-engine", "deduplicate") != "deduplicate" else rows(columns, [2, 4], _kind="-D")


def fill_compacted(table: Table, columns: list) -> None:
    fill(table, columns)
    table.compact(full=True)
    if table.schema.primary_keys:
        write(table, columns, rows(columns, [1, 3], v="later"))
        table.compact(full=True)


def fill_dead(table: Table, columns: list) -> None:
    write(table, columns, rows(columns, range(20)))
    table.delete("k IN (3, 4, 11)")


EVOLVED = [["k", "BIGINT NOT NULL"], ["v2", "STRING"], ["n", "DECIMAL(24, 4)"], ["ts", "TIMESTAMP(6)"], ["i", "BIGINT"], ["f", "DOUBLE"], ["w", "BIGINT"]]


def fill_evolved(table: Table, columns: list) -> None:
    fill(table, columns)
    table.alter(RenameColumn("v", "v2"), DropColumn("dt"), UpdateColumnType("i", "BIGINT"), AddColumn("w", "BIGINT"))
    more = [{**{("v2" if name == "v" else name): made for name, made in row.items() if name != "dt"}, "w": 7} for row in rows(columns, range(10, 15))]
    write(table, EVOLVED, more)


def shapes() -> list[Shape]:
    made = []
    partitioned = [["p", "STRING NOT NULL"], *FLAT]
    aggregated = {"merge-engine": "aggregation", "fields.i.aggregate-function": "sum", "fields.n.aggregate-function": "max"}
    for fmt in FORMATS:
        of = {"file.format": fmt}
        made += [
            Shape(f"append_{fmt}", FLAT, options=of),
            Shape(f"append_parted_{fmt}", partitioned, partition_by=("p",), options=of),
            Shape(f"append_dead_{fmt}", FLAT, options={**of, "deletion-vectors.enabled": "true"}, fill=fill_dead),
            Shape(f"keyed_{fmt}", FLAT, ("k",), options={**of, "bucket": "2", "write-only": "true"}),
            Shape(f"keyed_parted_{fmt}", partitioned, ("p", "k"), ("p",), {**of, "bucket": "1"}, fill_compacted),
            Shape(f"vectors_{fmt}", FLAT, ("k",), options={**of, "bucket": "1", "deletion-vectors.enabled": "true"}, fill=fill_compacted),
            Shape(f"partial_{fmt}", FLAT, ("k",), options={**of, "bucket": "1", "merge-engine": "partial-update"}),
            Shape(f"aggregated_{fmt}", FLAT, ("k",), options={**of, "bucket": "1", **aggregated}),
            Shape(f"first_{fmt}", FLAT, ("k",), options={**of, "bucket": "1", "merge-engine": "first-row"}, fill=fill_compacted),
            Shape(f"evolved_{fmt}", FLAT, options=of, fill=fill_evolved),
            Shape(f"evolved_keyed_{fmt}", FLAT, ("k",), options={**of, "bucket": "1"}, fill=fill_evolved),
            Shape(f"nested_{fmt}", NESTED, options=of),
            Shape(f"nested_keyed_{fmt}", NESTED, ("k",), options={**of, "bucket": "1"}),
            Shape(f"old_{fmt}", OLD, options=of),
            Shape(f"old_keyed_{fmt}", OLD, ("k",), options={**of, "bucket": "1"}),
            Shape(f"instants_{fmt}", INSTANTS, options=of),
        ]
    made += [
        Shape("true_instants_orc", INSTANTS, options={"file.format": "orc", "orc.timestamp-ltz.legacy.type": "false"}),
        Shape("hashed", FLAT, ("k",)),
        Shape("moving", partitioned, ("k",), ("p",), {"bucket": "-1"}),
        Shape("postponed", FLAT, ("k",), options={"bucket": "-2", "postpone.default-bucket-num": "2"}, fill=fill_compacted),
        Shape("vectors64", FLAT, ("k",), options={"bucket": "1", "deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": "true"}, fill=fill_compacted),
    ]
    return made


SHAPES = {shape.name: shape for shape in shapes() if re.fullmatch(os.environ.get("PAIMON_ENGINE_SHAPES", ".*"), shape.name)}
"""All of them, or those that the environment names."""


def create(warehouse: pathlib.Path, shape: Shape) -> None:
    catalog = Catalog.open(str(warehouse))
    catalog.create_database("default", exist_ok=True)
    table = catalog.create_table(
        f"default.{shape.name}", Schema([tuple(c) for c in shape.columns]), primary_key=list(shape.primary_key),
        partition_by=list(shape.partition_by), options=shape.options,
    )  # fmt: skip
    shape.fill(table, shape.columns)


def open_table(warehouse: pathlib.Path, shape: Shape) -> Table:
    return Table.open(str(warehouse / "default.db" / shape.name))


def more(table: Table, shape: Shape) -> None:
    """What we add after an engine added something, with a full compaction."""
    made = rows(shape.columns, [30, 31])
    if shape.final is EVOLVED:
        made = [{"k": row["k"], "v2": row["v"], "n": row["n"], "ts": row["ts"], "i": row["i"], "f": row["f"], "w": None} for row in made]
    write(table, shape.final, made)
    table.compact(full=True)


# -- statements -----------------------------------------------------------------------------------------------------


def names(shape: Shape) -> list[str]:
    return [name for name, _ in shape.final]


def filters(shape: Shape) -> list[str]:
    """Conditions that all engines understand."""
    made = ["k > 5 AND k < 11"]
    have = names(shape)
    if "i" in have:
        made.append("i >= 30 OR i IS NULL")
    if "v" in have:
        made.append("v = 'é7'")
    if "p" in have:
        made.append("p = 'a b/1' AND k < 9")
    if "ts" in have:
        made.append("ts < TIMESTAMP '1965-01-01 00:00:00'" if "s" in have else "ts >= TIMESTAMP '2024-01-08 00:00:00'")
    return made


def selects(shape: Shape) -> list[str]:
    """All rows; and in one statement, since each costs an engine seconds, the number of rows and the keys behind every filter."""
    whole = f"SELECT {', '.join(names(shape))} FROM {shape.name}"
    keys = [f"SELECT '{number}' AS which, k AS found FROM {shape.name} WHERE {one}" for number, one in enumerate(filters(shape))]
    return [whole, " UNION ALL ".join([f"SELECT 'rows' AS which, COUNT(*) AS found FROM {shape.name}", *keys])]


def copy_of_a_row(shape: Shape) -> str:
    """A statement that adds the row of key 5 once more, under key 1005."""
    columns = ["k + 1000" if name == "k" else name for name in names(shape)]
    return f"INSERT INTO {shape.name} SELECT {', '.join(columns)} FROM {shape.name} WHERE k = 5"


# -- values ---------------------------------------------------------------------------------------------------------


def expected(table: Table, shape: Shape, statement: str) -> list[tuple]:
    """What `statement` gives, by our own reader."""
    if "COUNT(*)" in statement:
        found = [("rows", str(table.scan().count()))]
        for number, one in enumerate(filters(shape)):
            keys = table.scan(columns=["k"], where=one.replace("TIMESTAMP '", "'")).to_arrow()["k"].to_pylist()
            found += [(str(number), str(key)) for key in keys]
        return sorted(found)
    columns = table.scan().to_arrow().select(names(shape)).columns
    return normal(shape, statement, list(zip(*map(column_values, columns), strict=True)))


def normal(shape: Shape, statement: str, answer: list) -> list[tuple]:
    """Rows of an answer as sorted tuples of texts, the same for all engines."""
    if "COUNT(*)" in statement:
        return sorted((str(which), str(found)) for which, found in answer)
    return sorted(tuple(number(item) if name in "nf" else plain(item) for name, item in zip(names(shape), row, strict=True)) for row in answer)


def number(item) -> str:
    return "NULL" if item in (None, "NULL") else f"{decimal.Decimal(str(item)).normalize():f}"


def column_values(column: pa.ChunkedArray) -> list:
    if pa.types.is_timestamp(column.type):
        return [None if n is None else _stamp(n, column.type.unit) for n in column.cast(pa.int64()).to_pylist()]
    return column.to_pylist()


def _stamp(number: int, unit: str) -> str:
    micros = number * {"s": 10**6, "ms": 10**3, "us": 1}[unit]
    return str(datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=micros))


def plain(item) -> str:
    """One text for a value, whatever engine printed it."""
    if item is None or item == "NULL":
        return "NULL"
    if isinstance(item, bool):
        return str(item).lower()
    if isinstance(item, (datetime.date, datetime.datetime)):
        return moment(str(item))
    if isinstance(item, dict):
        return _join(f"{key}:{plain(inner)}" for key, inner in sorted(item.items()))
    if isinstance(item, (list, tuple)):
        if item and all(isinstance(one, (list, tuple)) and len(one) == 2 and isinstance(one[0], str) for one in item):
            return _join(f"{key}:{plain(inner)}" for key, inner in sorted(item))
        return _join(map(plain, item))
    text = str(item)
    if text[:1] in "[{":
        return plain(json.loads(text))
    return moment(text)


def moment(text: str) -> str:
    """Times without a zone, `T` and zeros at the end."""
    if len(text) > 10 and text[4] == "-" and text[10] in "T ":
        day, clock = text[:10], text[11:].removesuffix("Z").removesuffix(" UTC")
        clock = clock if clock.count(":") == 2 else f"{clock}:00"
        return f"{day} {clock.rstrip('0').rstrip('.') if '.' in clock else clock}"
    return text


def _join(parts) -> str:
    return "<" + ",".join(parts) + ">"
