"""The rows that the workloads use: the same for every peer, from a fixed seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

SCHEMA = pa.schema(
    [
        pa.field("k", pa.int64(), nullable=False),
        ("a", pa.int64()),
        ("b", pa.float64()),
        ("c", pa.string()),
        ("d", pa.timestamp("us")),
        ("e", pa.string()),
    ]
)
_CITIES = np.array(["Amsterdam", "Berlin", "Chengdu", "Dakar", "El Paso", "Fortaleza", "Galway", "Hangzhou"])


def narrow(keys: np.ndarray, seed: int) -> pa.Table:
    """Six columns: int64 key, random int64, random double, one of 8 strings, timestamp, a string of 13 characters."""
    rng = np.random.default_rng(seed)
    count = len(keys)
    unique = pa.array(rng.integers(10**12, 10**13, count)).cast(pa.string())
    columns = [
        pa.array(keys),
        pa.array(rng.integers(-(2**40), 2**40, count)),
        pa.array(rng.random(count) * 1000),
        pa.array(_CITIES[rng.integers(0, 8, count)]),
        pa.array(1_700_000_000_000_000 + rng.integers(0, 10**13, count)).cast(pa.timestamp("us")),
        unique,
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def wide(keys: np.ndarray, seed: int) -> pa.Table:
    """22 columns, about 210 bytes a row: key, 8 integers, 6 doubles, 5 strings, 2 timestamps."""
    rng = np.random.default_rng(seed)
    count = len(keys)
    columns = {"k": pa.array(keys)}
    for i in range(8):
        columns[f"i{i}"] = pa.array(rng.integers(-(2**40), 2**40, count))
    for i in range(6):
        columns[f"f{i}"] = pa.array(rng.random(count))
    for i in range(5):
        columns[f"s{i}"] = pa.array(rng.integers(10**12, 10**13, count)).cast(pa.string())
    for i in range(2):
        columns[f"t{i}"] = pa.array(1_700_000_000_000_000 + rng.integers(0, 10**13, count)).cast(pa.timestamp("us"))
    table = pa.table(columns)
    return table.cast(pa.schema([table.schema.field(0).with_nullable(False), *list(table.schema)[1:]]))


def without(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """The rows with NULL in some columns."""
    for name in names:
        field = table.schema.field(name)
        table = table.set_column(table.schema.get_field_index(name), field, pa.nulls(table.num_rows, field.type))
    return table


def scattered(numbers: np.ndarray, count: int) -> np.ndarray:
    """`numbers` below `count` as other numbers below it, each once, in an order that looks random."""
    step = next(step for step in range(7_919_999, 8_919_999) if math.gcd(step, count) == 1)
    return (numbers * step + 13) % count


def load_keys(count: int) -> np.ndarray:
    """`count` distinct keys in random order."""
    return np.random.default_rng(1).permutation(count).astype(np.int64)


def upsert_keys(count: int, loaded: int, number: int) -> np.ndarray:
    """Keys of upsert `number`: half of them are there already, half are new."""
    rng = np.random.default_rng(100 + number)
    old = rng.choice(loaded, count // 2, replace=False)
    new = loaded + number * (count // 2) + np.arange(count - count // 2)
    return rng.permutation(np.concatenate([old, new])).astype(np.int64)


def half_even(count: int, below: int) -> np.ndarray:
    """Distinct numbers, half of them even ones below a bound, half odd, in random order."""
    rng = np.random.default_rng(3)
    halves = [2 * rng.choice(below // 2, size, replace=False) for size in (count - count // 2, count // 2)]
    return rng.permutation(np.concatenate([halves[0], halves[1] + 1])).astype(np.int64)


def store(table: pa.Table, path: Path) -> None:
    """Write an uncompressed Arrow file that peers map into memory."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=131_072)
