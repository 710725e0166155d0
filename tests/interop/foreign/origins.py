"""The tables that are changed: small ones of ours and of Java, one for each kind, and the golden corpus."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import golden
from locate import CORPUS
from pair import Kind, Pair

ROWS_MAX = 400
"""Golden tables with more rows are left out."""


class Origin(NamedTuple):
    """A table of warehouse `db`: how it is made, by whom, in actions of `pair`."""

    name: str
    kind: Kind
    script: tuple[tuple, ...]


def _values(number: int) -> dict:
    return {
        "b": number % 2 == 0, "i8": number - 3, "i16": number * 100, "n": number * 10, "l": number * 10**10, "f": number + 0.5,
        "d": number / 3, "dec": f"{number}.25", "big": f"{number}000000000000000000.5", "s": f"text {number}", "by": f"0{number % 10}ff",
        "dt": f"2024-05-{number + 1:02d}", "tm": "12:34:56.789", "t3": f"2024-01-02T03:04:0{number % 10}.678",
        "t6": "2024-01-02T03:04:05.678901", "tz": "2024-01-02T03:04:05.678", "ar": [number, None], "m": [["a", number]],
        "r": {"x": number, "y": f"y{number}"}, "c": "ab",
    }  # fmt: skip


WIDE = [
    ["k", "INT NOT NULL"], ["b", "BOOLEAN"], ["i8", "TINYINT"], ["i16", "SMALLINT"], ["n", "INT"], ["l", "BIGINT"], ["f", "FLOAT"],
    ["d", "DOUBLE"], ["dec", "DECIMAL(10, 2)"], ["big", "DECIMAL(30, 1)"], ["s", "STRING"], ["by", "BYTES"], ["dt", "DATE"],
    ["tm", "TIME(3)"], ["t3", "TIMESTAMP(3)"], ["t6", "TIMESTAMP(6)"], ["tz", "TIMESTAMP(6) WITH LOCAL TIME ZONE"],
    ["ar", {"type": "ARRAY", "element": "INT"}], ["m", {"type": "MAP", "key": "STRING NOT NULL", "value": "INT"}],
    ["r", {"type": "ROW", "fields": [{"id": 30, "name": "x", "type": "INT"}, {"id": 31, "name": "y", "type": "STRING"}]}], ["c", "VARCHAR(5)"],
]  # fmt: skip
NARROW = [["p", "STRING NOT NULL"], ["k", "INT NOT NULL"], ["v", "STRING"], ["n", "BIGINT"]]


def _wide(*numbers: int) -> list[dict]:
    return [{"k": number, **({} if number % 4 == 3 else _values(number))} for number in numbers]


def _narrow(*numbers: int, **more) -> list[dict]:
    return [{"p": "xy"[number % 2], "k": number, "v": f"v{number}", "n": number * 7, **more} for number in numbers]


def _kinds() -> list[Origin]:
    found = []
    for form in ("parquet", "orc", "avro"):
        bucketed = {"bucket": "1", "file.format": form}
        found.append(Origin(f"wide append {form}", Kind(WIDE, [], [], {"bucket": "-1", "file.format": form}), (("write", _wide(0, 1, 2)), ("write", _wide(3, 4)))))
        found.append(Origin(f"wide keys {form}", Kind(WIDE, ["k"], [], bucketed), (("write", _wide(0, 1, 2, 3)), ("write", _wide(1, 5)), ("tag", "t1"))))
        parts = Kind(NARROW, ["p", "k"], ["p"], {"bucket": "2", "file.format": form, "changelog-producer": "input"})
        found.append(
            Origin(f"keys in parts {form}", parts, (
                ("write", _narrow(0, 1, 2, 3)), ("tag", "t1"), ("write", [*_narrow(2, v="new"), *_narrow(1, _kind="-D")]), ("compact", True),
                ("write", _narrow(6, 7)),
            ))
        )  # fmt: skip
        found.append(
            Origin(f"vectors {form}", Kind(NARROW, ["p", "k"], ["p"], {"bucket": "1", "file.format": form, "deletion-vectors.enabled": "true"}), (
                ("write", _narrow(0, 1, 2, 3, 4, 5)), ("compact", True), ("write", _narrow(2, 3, v="new")), ("compact", False), ("write", _narrow(8)),
            ))
        )  # fmt: skip
    append = {"bucket": "-1", "file.format": "avro"}
    found.append(Origin("append in parts", Kind(NARROW, [], ["p"], append), (("write", _narrow(0, 1)), ("write", _narrow(2, 3)), ("tag", "t1"), ("drop", [{"p": "x"}]), ("write", _narrow(4)))))
    changed = (
        ("write", _narrow(0, 1)), ("alter", ["add", "w", "INT"], ["rename", "v", "vv"]), ("write", [{"p": "x", "k": 8, "vv": "z", "w": 5}]),
        ("alter", ["type", "w", "BIGINT"], ["drop", "n"]), ("write", [{"p": "x", "k": 9, "vv": "q", "w": 6}]),
    )  # fmt: skip
    for form in ("parquet", "orc", "avro"):
        found.append(Origin(f"changed schema {form}", Kind(NARROW, [], [], {**append, "file.format": form}), changed))
    found.append(
        Origin("manifests in ORC", Kind(NARROW, ["p", "k"], ["p"], {"bucket": "1", "manifest.format": "orc", "deletion-vectors.enabled": "true"}), (
            ("write", _narrow(0, 1, 2, 3)), ("compact", True), ("tag", "t1"), ("write", _narrow(2, v="new")), ("compact", False), ("write", _narrow(5)),
        ))
    )  # fmt: skip
    found.append(Origin("dynamic buckets", Kind(NARROW, ["p", "k"], ["p"], {"bucket": "-1"}), (("write", _narrow(0, 1, 2, 3)), ("write", _narrow(2, 4)))))
    merging = {"bucket": "1", "merge-engine": "partial-update", "sequence.field": "n"}
    found.append(Origin("partial update", Kind(NARROW, ["k"], [], merging), (("write", _narrow(0, 1, 2)), ("write", _narrow(1, 2, v=None)), ("tag", "t1"))))
    sums = {"bucket": "1", "merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
    found.append(Origin("sums", Kind(NARROW, ["k"], [], sums), (("write", _narrow(0, 1, 2)), ("write", _narrow(1, 2)), ("compact", True), ("write", _narrow(1)))))
    found.append(Origin("first row", Kind(NARROW, ["k"], [], {"bucket": "1", "merge-engine": "first-row"}), (("write", _narrow(0, 1, 2)), ("write", _narrow(1, 5)), ("compact", True))))
    return found


OWN = _kinds()


@functools.cache
def golden_cases() -> dict[str, golden.Case]:
    """The cases whose warehouse is small, by name."""
    cases = golden.cases(str(CORPUS))
    return {case.name: case for case in cases if (Path(case.path) / "warehouse.tar.gz").stat().st_size < 60_000 and case.table == "db.t"}


class Maker:
    """Makes each origin once for a run; a copy of it is what a change gets."""

    def __init__(self, java, folder: Path) -> None:
        self._java = java
        self._folder = folder
        self._made: dict[tuple[str, str], Path] = {}

    def path(self, name: str, by: str) -> Path:
        """The directory of the table; `by` is o (we), j (Java) or g (golden)."""
        if (name, by) not in self._made:
            self._made[name, by] = self._make(name, by, self._folder / f"{by} {name}")
        return self._made[name, by]

    def _make(self, name: str, by: str, warehouse: Path) -> Path:
        if by == "g":
            return Path(golden.unpack(golden_cases()[name], warehouse)) / "db.db" / "t"
        origin = next(one for one in OWN if one.name == name)
        pair = Pair(self._java, warehouse)
        pair.create(origin.kind, by)
        for action in origin.script:
            pair.act(action, by)
        table = pair.table()
        table.create_branch("b1", **({"from_": "t1"} if any(tag.name == "t1" for tag in table.tags()) else {}))
        pair.step("consumer", name="c1", next=1)
        return pair.path


Origins = Callable[[], list[tuple[str, str]]]


def all_origins() -> list[tuple[str, str]]:
    """(name, by) of every origin; ours and Java's come as often as golden ones."""
    return [(origin.name, by) for origin in OWN for by in "oj"] + [(name, "g") for name in golden_cases()]
