"""Indexes of random columns have Java's bytes; where Java's order is that of a hash map, they say the same."""

from __future__ import annotations

import random

import golden
import pyarrow as pa
import pytest
from values import python_value

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.file_index import container
from paimon_py.codec.file_index.answer import Indexed, matching_rows, writer_of
from paimon_py.codec.file_index.keys import KeyKind
from paimon_py.expr.bind import bind
from paimon_py.expr.column import col
from paimon_py.spec.file_indexes import KINDS, allows
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import Field

TYPES = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(5, 2)", "DECIMAL(18, 0)", "DATE", "TIME(3)",
    "CHAR(3)", "VARCHAR(40)", "STRING", "BINARY(3)", "BYTES", "TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(9)",
    "TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP(6) WITH LOCAL TIME ZONE",
)  # fmt: skip
OPTIONS = {
    "bloom-filter": [{"items": "100"}, {"items": "37", "fpp": "0.01"}],
    "bitmap": [{}, {"version": "1"}, {"index-block-size": "400 b"}],
    "bsi": [{}],
    "range-bitmap": [{}, {"chunk-size": "40 b"}],
}


def some_value(kind: str, dice: random.Random):
    root = kind.split("(")[0]
    if root == "BOOLEAN":
        return dice.random() < 0.5
    bits = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}.get(root)
    if bits:
        small = dice.randrange(-20, 20)
        edge = dice.choice([-(2 ** (bits - 1)) + 1, 2 ** (bits - 1) - 1, dice.randrange(-(2 ** (bits - 1)) + 1, 2 ** (bits - 1))])
        number = small if dice.random() < 0.7 else edge
        return str(number) if bits == 64 else number
    if root in ("FLOAT", "DOUBLE"):
        return dice.choice(["NaN", "-0.0", "0.0", "Infinity", "-Infinity", "1.5", "-2.25", str(dice.randrange(-9, 9))])
    if root == "DECIMAL":
        return f"{dice.randrange(-300, 300)}" if kind.endswith("0)") else f"{dice.randrange(-999, 999)}.{dice.randrange(100):02}"
    if root == "DATE":
        return f"{dice.choice([1, 1969, 1970, 2024, 9999]):04}-0{dice.randrange(1, 9)}-1{dice.randrange(9)}"
    if root == "TIME":
        return f"0{dice.randrange(9)}:{dice.randrange(10, 60)}:00.{dice.randrange(1000):03}"
    if root in ("BINARY", "BYTES"):
        length = 3 if root == "BINARY" else dice.choice([0, 1, 7, 8, 31, 32, 33, 100])
        return dice.randbytes(length).hex()
    if root in ("CHAR", "VARCHAR", "STRING"):
        most = 3 if root == "CHAR" else dice.choice([0, 1, 2, 9, 40])
        return "".join(dice.choice("abzé水😀") for _ in range(dice.randrange(most + 1)))
    precision = int(kind[len("TIMESTAMP(")])
    fraction = f"{dice.randrange(3):0{precision}}" if precision else ""
    return f"{dice.choice([1901, 1969, 1970, 2024])}-01-0{dice.randrange(1, 9)}T03:04:05" + (f".{fraction}" if fraction else "")


def columns_of(seed: int) -> dict[str, dict]:
    dice = random.Random(seed)
    columns = {}
    for number, kind in enumerate(TYPES):
        count = dice.choice([0, 1, 5, 60])
        nulls = dice.choice([0.0, 0.0, 0.2, 1.0])
        pool = [some_value(kind, dice) for _ in range(dice.choice([1, 4, 60]))]
        values = [None if dice.random() < nulls else dice.choice(pool) for _ in range(count)]
        indexes = {name: dice.choice(OPTIONS[name]) for name in KINDS if allows(name, parse_type(kind))}
        columns[f"c{number}"] = {"type": kind, "values": values, "indexes": indexes}
    return columns


def array_of(column: dict) -> pa.Array:
    type_ = to_arrow_type(parse_type(column["type"]))
    kind = golden.parse_type(column["type"])
    return pa.array([python_value(value, kind, type_) for value in column["values"]], type_)


def made(array: pa.Array, kind: str, index: str, options: dict) -> bytes:
    writer = writer_of(index, parse_type(kind), options)
    for start in range(0, len(array), 7):
        writer.add(array.slice(start, 7))
    return writer.finish()


class Given:
    """Indexes in memory."""

    path = "memory"

    def __init__(self, indexes):
        self.indexes = indexes

    def kinds(self, column):
        return list(self.indexes.get(column, ()))

    def load(self, column, kind):
        return self.indexes[column][kind]


def rows_of_values(index: bytes, array: pa.Array, kind: str, name: str):
    """For every distinct value, and for NULL, the rows that an index gives."""
    field = Field(0, "c", parse_type(kind))
    file = Indexed(Given({"c": {name: index}}), {"c": field}, len(array))
    answers = [matching_rows(bind(col("c").is_null(), [field]), file)]
    for value in array.unique().drop_null():
        answers.append(matching_rows(bind(col("c") == value, [field]), file))
    return answers


@pytest.mark.parametrize("version", ["2.0.0", "1.4.2"])
@pytest.mark.parametrize("seed", range(3))
def test_indexes_of_random_columns_are_those_of_java(java, tmp_path, seed, version):
    columns = columns_of(seed)
    (output,) = java(version).run(str(tmp_path), [{"op": "fileIndex", "columns": columns}], check=True)
    theirs = {name: bytes.fromhex(text) for name, text in output["result"].items()}
    packed = container.decode(theirs["container"], "java")
    for column, content in columns.items():
        array = array_of(content)
        for index, options in content["indexes"].items():
            mine, other = made(array, content["type"], index, options), theirs[f"{column}/{index}"]
            assert packed[column][index] == other
            if index != "bitmap":
                assert mine == other, (column, content["type"], index, options)
                continue
            assert len(mine) == len(other), (column, content["type"], options)
            if content["type"] != "TIMESTAMP(9)":
                want = rows_of_values(mine, array, content["type"], index)
                assert rows_of_values(other, array, content["type"], index) == want
                assert sum(map(len, want)) == len(array)
    ours = container.encode(packed)
    assert len(ours) == len(theirs["container"])
    assert container.decode(ours, "ours") == packed


def test_every_type_has_an_index_kind():
    assert all(KeyKind.of(parse_type(kind)).width in (0, 1, 2, 4, 8) for kind in TYPES)
