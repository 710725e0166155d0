"""`python -m benchmarks.shapes`: paimon_py beside pypaimon-rust on tables of many shapes, CPU of one core.

Both write the same rows into equal tables, and read the table that paimon_py wrote; what they read is compared. Every
sample is a fresh process and every figure a later call in it, so that loading modules does not count. With two sizes
each line has a cost that does not depend on rows, and one of each row.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.children import Failed, run
from paimon_py import Catalog

UPSERTS = 5
PARTITIONS = 30
Columns = dict[str, pa.Array]


class Shape(NamedTuple):
    """A kind of table. `columns`: given random numbers and keys, what there is beside the columns of all shapes."""

    columns: Callable[[np.random.Generator, np.ndarray], Columns] = lambda _rng, _keys: {}
    options: Mapping[str, str] = {}
    key: tuple[str, ...] = ("k",)
    partitions: tuple[str, ...] = ()
    files: int = 1


class Line(NamedTuple):
    """What a peer is asked to do: a step, and its settings."""

    name: str
    step: str
    settings: Mapping[str, Any] = {}


class Figure(NamedTuple):
    """CPU seconds of one line: the least of each peer, and the median of the ratios."""

    shape: str
    rows: int
    line: str
    ours: float
    rust: float | None
    ratio: float | None


def _texts(rng: np.random.Generator, keys: np.ndarray) -> Columns:
    return {f"t{number}": _text(rng.integers(0, 10**9, len(keys)), 40) for number in range(6)}


def _nested(rng: np.random.Generator, keys: np.ndarray) -> Columns:
    ends = pa.array(np.arange(len(keys) + 1, dtype=np.int32) * 4)
    parts = [pa.array(rng.integers(0, 2**40, len(keys))), _text(rng.integers(0, 10**5, len(keys)), 6)]
    rows = pa.StructArray.from_arrays(parts, ["x", "y"])
    return {"l": pa.ListArray.from_arrays(ends, pa.array(rng.random(4 * len(keys)))), "r": rows}


def _typed(rng: np.random.Generator, keys: np.ndarray) -> Columns:
    count = len(keys)
    return {
        "ts": pa.array(rng.integers(0, 2**50, count), pa.timestamp("us")),
        "d": pa.array(rng.integers(0, 20_000, count).astype(np.int32), pa.date32()),
        "m": pa.array(rng.integers(0, 10**9, count)).cast(pa.decimal128(19, 0)).cast(pa.decimal128(21, 2)),
        "o": pa.array(rng.random(count) < 0.5),
    }


def _nulls(rng: np.random.Generator, keys: np.ndarray) -> Columns:
    holes = rng.random(len(keys)) < 0.6
    return {"a": pa.array(rng.integers(0, 2**40, len(keys)), mask=holes)}


def _in_partitions(count: int) -> Callable[[np.random.Generator, np.ndarray], Columns]:
    return lambda _rng, keys: {"p": pa.array((keys % count).astype(np.int32))}


SHAPES = {
    "int-key": Shape(),
    "string-key": Shape(lambda _rng, keys: {"k": _text(keys * 2_654_435_761 % 2**32, 12)}),
    "composite-key": Shape(lambda _rng, keys: {"k2": _text(keys // 1000, 8)}, key=("k", "k2")),
    "partitioned": Shape(_in_partitions(PARTITIONS), key=("p", "k"), partitions=("p",)),
    "many-partitions": Shape(_in_partitions(2000), key=("p", "k"), partitions=("p",)),
    "buckets": Shape(options={"bucket": "8"}),
    "dynamic": Shape(options={"bucket": "-1"}),
    "texts": Shape(_texts),
    "nested": Shape(_nested),
    "typed": Shape(_typed),
    "nulls": Shape(_nulls),
    "sequence": Shape(options={"sequence.field": "a"}),
    "partial-update": Shape(_nulls, options={"merge-engine": "partial-update"}),
    "orc": Shape(options={"file.format": "orc"}),
    "avro": Shape(options={"file.format": "avro"}),
    "append": Shape(options={"bucket": "-1"}, key=()),
    "append-texts": Shape(_texts, options={"bucket": "-1"}, key=()),
    "append-nested": Shape(_nested, options={"bucket": "-1"}, key=()),
    "many-files": Shape(options={"bucket": "-1"}, key=(), files=1000),
}
READS = (
    Line("plan", "plan"),
    Line("read all", "read"),
    Line("read two", "read", {"columns": ["a", "b"]}),
    Line("filter value", "read", {"range": [0.5, 0.505], "column": "b"}),
    Line("filter key", "read", {"column": "k"}),
    Line("one row", "read", {"column": "a"}),
    Line("first ten", "read", {"limit": 10}),
)


def made(shape: Shape, count: int, keys: np.ndarray, seed: int) -> pa.Table:
    """Rows of a shape with these keys, in random order."""
    rng = np.random.default_rng(seed)
    keys = rng.permutation(keys)
    columns: Columns = {
        "k": pa.array(keys), "a": pa.array(rng.integers(0, 2**40, count)), "b": pa.array(rng.random(count)),
        "s": _text(rng.integers(0, 10**6, count), 8), **shape.columns(rng, keys),
    }  # fmt: skip
    table = pa.table(columns)
    named = {*shape.key, *shape.partitions}
    return table.cast(pa.schema([field.with_nullable(field.name not in named) for field in table.schema]))


def measure(name: str, rows: int, repeats: int, root: Path) -> list[Figure]:
    """All lines of one shape and size."""
    shape = SHAPES[name]
    inputs = _inputs(shape, rows, root)
    tables = {peer: _create(shape, inputs["load"][0], root / peer) for peer in ("ours", "rust")}
    figures = [
        _compare(name, rows, Line(line, "write"), repeats, {
            peer: {"table": tables[peer], "inputs": inputs[line]} for peer in tables
        })
        for line in ("load", "upserts") if inputs[line]
    ]  # fmt: skip
    for line in READS:
        settings = {"table": tables["ours"], **settings_of(line, inputs, rows)}
        figures.append(_compare(name, rows, line, repeats, dict.fromkeys(tables, settings)))
    return figures


def settings_of(line: Line, inputs: Mapping[str, Sequence[str]], rows: int) -> dict[str, Any]:
    """The settings of a read of these rows; `inputs`: the files with loads and upserts."""
    settings = dict(line.settings)
    if line.name == "filter key":
        settings["range"] = _bounds_of(inputs["load"][0], rows)
    elif line.name == "one row":
        settings["equals"] = _column((inputs["upserts"] or inputs["load"])[-1], "a").drop_null()[0].as_py()
    return settings


def _bounds_of(loaded: str, rows: int) -> list[Any]:
    """The keys between which one in a hundred lies; of many files, of the keys in the first."""
    keys = _column(loaded, "k").sort()
    middle = min(rows, len(keys)) // 2
    return [keys[middle].as_py(), keys[min(middle + max(1, rows // 100), len(keys) - 1)].as_py()]


def written(shape: Shape, rows: int, root: Path) -> tuple[str, dict[str, list[str]]]:
    """A table of a shape that paimon_py wrote, and the files with the rows of its loads and upserts."""
    inputs = _inputs(shape, rows, root)
    table = _create(shape, inputs["load"][0], root / "ours")
    run("ours", "write", {"table": table, "inputs": [*inputs["load"], *inputs["upserts"]]})
    return table, inputs


def costs(figures: Iterable[Figure]) -> dict[tuple[str, str], tuple[float, float]]:
    """Of each shape and line that was measured at two sizes: milliseconds for any number of rows, nanoseconds a row."""
    found: dict[tuple[str, str], list[Figure]] = {}
    for figure in figures:
        found.setdefault((figure.shape, figure.line), []).append(figure)
    fits = {}
    for place, of_sizes in found.items():
        least, most = min(of_sizes, key=_rows), max(of_sizes, key=_rows)
        if most.rows > least.rows:
            slope = (most.ours - least.ours) / (most.rows - least.rows)
            fits[place] = (least.ours - slope * least.rows) * 1e3, slope * 1e9
    return fits


def lost(figures: Iterable[Figure]) -> list[Figure]:
    """Where paimon_py takes more, the worst first."""
    return sorted((one for one in figures if one.ratio and one.ratio > 1.05), key=lambda one: -(one.ratio or 0))


def table_of(figures: Sequence[Figure]) -> str:
    """The ratios of the largest size, a row for each shape."""
    most = max((figure.rows for figure in figures), default=0)
    names = list(dict.fromkeys(figure.line for figure in figures))
    lines = [f"| ours / rust, {most:,} rows | {' | '.join(names)} |", "|---|" + "---|" * len(names)]
    for shape in dict.fromkeys(figure.shape for figure in figures):
        cells = {one.line: one for one in figures if one.shape == shape and one.rows == most}
        lines.append(f"| {shape} | {' | '.join(_cell(cells.get(line)) for line in names)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shapes", description=__doc__)
    parser.add_argument("--sizes", default="100000,1000000")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default=",".join(SHAPES))
    given = parser.parse_args(arguments)
    figures: list[Figure] = []
    for name in given.only.split(","):
        for size in given.sizes.split(","):
            with tempfile.TemporaryDirectory() as directory:
                figures += measure(name, int(size), given.repeats, Path(directory))
    print(table_of(figures))
    print("\nslower than rust:", ", ".join(f"{one.shape} {one.line} {one.ratio:.2f}x" for one in lost(figures)) or "-")
    for (shape, line), (fixed, slope) in costs(figures).items():
        print(f"{shape}, {line}: {fixed:.1f} ms and {slope:.0f} ns a row")
    return figures


def _compare(shape: str, rows: int, line: Line, repeats: int, settings: Mapping[str, Mapping[str, Any]]) -> Figure:
    """One line by both peers in turns. The two must find the same."""
    samples: dict[str, list[float]] = {peer: [] for peer in settings}
    seen: dict[str, object] = {}
    for _ in range(repeats):
        for peer, given in settings.items():
            try:
                done = run(peer, line.step, {**given, "repeats": 1 if line.step == "write" else 2})
            except Failed:
                if peer == "ours":
                    raise
                continue
            samples[peer].append(min(done["repeat_cpu"]))
            seen[peer] = done["check"]
    if line.step == "read" and "limit" not in line.settings and len(seen) == 2 and seen["ours"] != seen["rust"]:
        raise Failed(f"{shape}, {line.name}: the two read different rows: {seen}")
    ours, rust = samples["ours"], samples["rust"]
    ratios = [one / other for one, other in zip(ours, rust, strict=True)] if rust else []
    ratio = statistics.median(ratios) if ratios else None
    return Figure(shape, rows, line.name, min(ours), min(rust, default=None), ratio)


def _inputs(shape: Shape, rows: int, root: Path) -> dict[str, list[str]]:
    rng = np.random.default_rng(1)
    step = rows // shape.files
    loads = [made(shape, step, np.arange(at * step, (at + 1) * step), at) for at in range(shape.files)]
    count = rows // 10 if shape.files == 1 else 0
    chosen = [rng.choice(rows, count, replace=False) for _ in range(UPSERTS) if count]
    upserts = [made(shape, count, keys, 10_000 + at) for at, keys in enumerate(chosen)]
    return {
        "load": [_kept(table, root / f"load-{at}.arrow") for at, table in enumerate(loads)],
        "upserts": [_kept(table, root / f"upsert-{at}.arrow") for at, table in enumerate(upserts)],
    }


def _kept(table: pa.Table, path: Path) -> str:
    with pa.ipc.new_file(path, table.schema) as sink:
        sink.write_table(table)
    return str(path)


def _column(path: str, name: str) -> pa.ChunkedArray:
    with pa.OSFile(path) as source:
        return pa.ipc.open_file(source).read_all()[name]


def _create(shape: Shape, rows: str, warehouse: Path) -> str:
    catalog = Catalog.open(warehouse)
    catalog.create_database("db")
    with pa.OSFile(rows) as source:
        schema = pa.ipc.open_file(source).schema
    options = {"bucket": "1", "write-only": "true", **shape.options}
    return catalog.create_table(
        "db.t", schema, primary_key=shape.key, partition_by=shape.partitions, options=options
    ).location


def _text(numbers: np.ndarray, width: int) -> pa.Array:
    return pa.array(np.char.add("t", np.char.zfill(numbers.astype(str), width)))


def _rows(figure: Figure) -> int:
    return figure.rows


def _cell(figure: Figure | None) -> str:
    if figure is None:
        return ""
    return f"{figure.ours * 1e3:.0f} ms" if figure.ratio is None else f"{figure.ratio:.2f}"


if __name__ == "__main__":
    main()
