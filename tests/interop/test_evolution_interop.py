"""Schemas that change between writes, by us, by Java and in turn: everybody reads every snapshot alike."""

from __future__ import annotations

import pytest
from pair import Kind, play, same_histories, same_metadata
from values import canonical_rows, difference

pytestmark = pytest.mark.java

ROW = {"type": "ROW", "fields": [{"id": 0, "name": "x", "type": "INT"}, {"id": 0, "name": "y", "type": "STRING"}]}
BASE = [["k", "INT NOT NULL"], ["a", "INT"], ["b", "STRING"], ["r", ROW]]
FIRST = [{"k": 1, "a": 7, "b": "12", "r": {"x": 1, "y": "q"}}, {"k": 2}, {"k": 3, "a": -1, "b": "x", "r": {"x": None, "y": None}}]


def more(**columns) -> list[dict]:
    return [{"k": 2, **columns}, {"k": 4, **columns}]


SCRIPTS = {
    "add": ([("alter", ["add", "c", "DECIMAL(24, 4)"])], more(a=5, c="1.0000")),
    "add-first-and-after": (
        [("alter", ["add", "c", "DATE", None, ["first", "c"]], ["add", "d", "STRING", "why", ["after", "d", "a"]])],
        more(c="2024-05-14", d="é"),
    ),
    "drop": ([("alter", ["drop", "a"])], more(b="z")),
    "drop-and-add-again": ([("alter", ["drop", "a"]), ("alter", ["add", "a", "STRING"])], more(a="new")),
    "rename": ([("alter", ["rename", "a", "z"])], more(z=9)),
    "swap-names": ([("alter", ["rename", "a", "t"], ["rename", "b", "a"], ["rename", "t", "b"])], more(a="text", b=3)),
    "widen": ([("alter", ["type", "a", "BIGINT"])], more(a=2**40)),
    "widen-twice": ([("alter", ["type", "a", "BIGINT"]), ("write", more(a=-(2**40))), ("alter", ["type", "a", "DOUBLE"])], more(a=1.5)),
    "to-decimal": ([("alter", ["type", "a", "DECIMAL(12, 2)"])], more(a="1.25")),
    "to-string": ([("alter", ["type", "a", "STRING"])], more(a="word")),
    "narrow": ([("alter", ["type", "a", "TINYINT"])], more(a=-128)),
    "positions": ([("alter", ["position", ["first", "b"]], ["position", ["last", "k"]], ["position", ["after", "r", "b"]])], more(b="moved")),
    "nullability": ([("alter", ["add", "c", "INT"]), ("alter", ["comment", "c", "new"])], more(c=1)),
    "nested-add": ([("alter", ["add", ["r", "z"], "DOUBLE"])], more(r={"x": 1, "y": "b", "z": 2.5})),
    "nested-drop-rename": ([("alter", ["drop", ["r", "x"]], ["rename", ["r", "y"], "w"])], more(r={"w": "only"})),
    "nested-type": ([("alter", ["type", ["r", "x"], "BIGINT"])], more(r={"x": 2**40, "y": None})),
    "options-and-comments": (
        [("alter", ["set", "write-buffer-size", "64 mb"], ["tableComment", "hello"], ["comment", "a", "first"])],
        more(a=1),
    ),
}  # fmt: skip


# What concerns names and types is asked of each format, what happens in columns of any file of one.
_EVERY_FORMAT = ("add", "drop", "rename", "widen", "to-string", "nested-add", "nested-drop-rename", "nested-type")
_IN_THE_FULL_RUN = ("add-first-and-after", "widen-twice", "to-decimal", "narrow")
CASES = [
    *((name, "parquet") for name in SCRIPTS),
    *((name, fmt) for name in _EVERY_FORMAT for fmt in ("orc", "avro")),
    *(pytest.param(name, fmt, marks=pytest.mark.full) for name in _IN_THE_FULL_RUN for fmt in ("orc", "avro")),
]


def same_schemas(pairs: dict) -> None:
    """All schema files say the same but for times."""
    described = {}
    for turn, pair in pairs.items():
        schema = pair.step("schema")
        described[turn] = {key: value for key, value in schema.items() if key != "timeMillis"}
        described[turn]["options"].pop("path")
    for turn, schema in described.items():
        assert schema == described["j"], turn


@pytest.mark.parametrize(("name", "fmt"), CASES)
def test_both_sides_read_old_files_in_the_new_schema(name, fmt, java, tmp_path):
    changes, after = SCRIPTS[name]
    kind = Kind(BASE, ["k"], options={"bucket": "1", "file.format": fmt, "write-only": "true"})
    pairs = play(java("2.0.0"), tmp_path, kind, [("write", FIRST), *changes, ("write", after), ("write", after[:1])])
    states = same_histories(pairs)
    same_schemas(pairs)
    same_metadata(pairs)
    columns = pairs["j"].columns()
    names = [column for column, kind in columns if isinstance(kind, str)]
    rows = states[max(states)][1]
    pick = {column: value for column, value in zip([c[0] for c in columns], rows[-1]) if column in names}
    filters = [["=", column, value] for column, value in pick.items() if value is not None]
    filters += [["isNull", column] for column in names if column != "k"]
    for turn in ("o", "j"):
        pairs[turn].check_filters(filters, rows)
        pairs[turn].step("compact", options={"write-only": "false"})
        assert difference(columns, rows, pairs[turn].agree()) is None


@pytest.mark.parametrize("version", ["1.4.2", "0.9.0"])
@pytest.mark.parametrize("name", ["add-first-and-after", "drop", "rename", "widen", "to-string", "positions"])
def test_older_javas_read_old_files_in_the_new_schema(name, version, java, tmp_path):
    changes, after = SCRIPTS[name]
    kind = Kind(BASE, ["k"], options={"bucket": "1", "write-only": "true"})
    first = [*FIRST[:2], {**FIRST[2], "r": {"x": 1, "y": None}}]  # 0.9 takes a row of nulls for null
    pairs = play(java(version), tmp_path, kind, [("write", first), *changes, ("write", after)], turns=("o", "j", "oj"))
    rows = {turn: pair.agree() for turn, pair in pairs.items()}
    for turn, got in rows.items():
        assert difference(pairs["j"].columns(), rows["j"], got) is None, turn


def test_statistics_of_old_files_prune_in_the_new_schema(java, tmp_path):
    columns = [["k", "INT"], ["a", "INT"], ["b", "STRING"]]
    script = [
        ("write", [{"k": 1, "a": 1, "b": "5"}, {"k": 2, "a": 300, "b": "x"}]),
        ("alter", ["type", "a", "STRING"], ["rename", "b", "c"]),
        ("write", [{"k": 3, "a": "20", "c": "y"}, {"k": 4, "a": None, "c": None}]),
    ]
    pairs = play(java("2.0.0"), tmp_path, Kind(columns), script)
    rows = same_histories(pairs)[2][1]
    filters = [["=", "a", "300"], ["<", "a", "20"], [">", "a", "20"], ["=", "c", "5"], ["isNull", "c"], [">=", "c", "x"]]
    for pair in pairs.values():
        pair.check_filters(filters, rows)
    want = canonical_rows([["k", "INT"], ["a", "STRING"], ["c", "STRING"]], [{"k": 2, "a": "300", "c": "x"}])
    assert [row for row in rows if row[0] == 2] == want
