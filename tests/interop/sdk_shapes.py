"""Makes tables with the official SDK, in whose Python this runs: `sdk_shapes.py WAREHOUSE` makes them, or writes them again."""

from __future__ import annotations

import datetime
import decimal
import sys

import pyarrow as pa
from pypaimon import CatalogFactory, Schema

KINDS = {
    "i": pa.int32(), "l": pa.int64(), "d": pa.float64(), "b": pa.bool_(), "s": pa.string(), "y": pa.binary(),
    "n": pa.decimal128(18, 3), "w": pa.date32(), "t": pa.timestamp("us"), "a": pa.list_(pa.string()),
    "m": pa.map_(pa.string(), pa.int64()), "r": pa.struct([("x", pa.int32()), ("z", pa.list_(pa.int32()))]),
}  # fmt: skip


def row(n):
    return {
        "i": n, "l": 2**40 + n, "d": n / 3, "b": n % 2 == 0, "s": f"text {n}", "y": bytes([n]), "n": decimal.Decimal("-1.500"),
        "w": datetime.date(2024, 1, 1 + n % 28), "t": datetime.datetime(2024, 1, 1, 0, 0, n), "a": ["x", None],
        "m": [("k", n)], "r": {"x": n, "z": [1, None]},
    }  # fmt: skip


def columns(names, *, nullable=True):
    return pa.schema([pa.field("k", pa.int32(), nullable=False), *(pa.field(n, KINDS[n], nullable=nullable) for n in names)])


def shapes():
    """By name: columns, batches of keys, keys, partitions, options, and whether the input says NOT NULL everywhere."""
    every, few = list(KINDS), ["s", "l"]
    yield "append", every, [[1, 2], [3]], [], [], {}, False
    yield "not_null_input", every, [[1, 2], [3]], [], [], {}, True
    yield "keyed", every, [[1, 2, 3], [2, 4]], ["k"], [], {"bucket": "2"}, False
    yield "keyed_not_null", every, [[1, 2, 3], [2, 4]], ["k"], [], {"bucket": "1"}, True
    yield "twice", few, [[1, 2, 1], [3]], ["k"], [], {"bucket": "1"}, False
    yield "parts", few, [[1, 2], [3]], [], ["s"], {}, False
    yield "dynamic", few, [[1, 2, 3], [2, 4]], ["k"], [], {"bucket": "-1"}, False
    yield "sequence", few, [[1, 2], [2]], ["k"], [], {"bucket": "1", "sequence.field": "l"}, False
    yield "small", few, [[n] for n in range(1, 13)], [], [], {}, False


def main(warehouse: str) -> None:
    catalog = CatalogFactory.create({"warehouse": warehouse})
    catalog.create_database("db", True)
    for name, names, batches, keys, parts, options, not_null in shapes():
        schema = columns(names)
        try:
            made = Schema.from_pyarrow_schema(schema, partition_keys=parts, primary_keys=keys, options=options)
            catalog.create_table(f"db.{name}", made, True)
            for batch in batches:
                build = catalog.get_table(f"db.{name}").new_batch_write_builder()
                writer = build.new_write()
                rows = [{"k": n, **{c: row(n)[c] for c in names}} for n in batch]
                writer.write_arrow(pa.Table.from_pylist(rows, schema=columns(names, nullable=not not_null)))
                build.new_commit().commit(writer.prepare_commit())
                writer.close()
        except Exception as error:  # noqa: BLE001 - what a release cannot do is not a table
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1])
