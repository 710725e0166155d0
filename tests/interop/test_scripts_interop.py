"""Overwrites, truncation, tags, watermarks, sequence fields, row kinds: played by us, by Java and in turn."""

from __future__ import annotations

import pytest
from pair import Kind, play, same_histories, same_metadata
from values import canonical_rows, difference

pytestmark = pytest.mark.java

KEYED = Kind([["k", "INT NOT NULL"], ["v", "STRING"]], ["k"], options={"bucket": "2", "write-only": "true"})
PARTED = Kind(
    [["p", "INT NOT NULL"], ["q", "STRING NOT NULL"], ["k", "INT NOT NULL"], ["v", "STRING"]],
    ["p", "q", "k"], ["p", "q"], {"bucket": "2", "write-only": "true"},
)  # fmt: skip
APPEND = Kind([["p", "INT"], ["v", "STRING"]], [], ["p"], {"write-only": "true"})
BUCKETED = Kind([["k", "INT"], ["v", "STRING"]], [], [], {"bucket": "2", "bucket-key": "k", "write-only": "true"})


def keyed(*numbers: int, v: str = "v") -> list[dict]:
    return [{"k": number, "v": f"{v}{number}"} for number in numbers]


def parted(p: int, q: str, *numbers: int, v: str = "v") -> list[dict]:
    return [{"p": p, "q": q, **row} for row in keyed(*numbers, v=v)]


def appended(p: int | None, *values: str) -> list[dict]:
    return [{"p": p, "v": value} for value in values]


KINDS = [{"k": 1, "v": "a"}, {"k": 2, "v": "b", "_kind": "+U"}, {"k": 3, "v": "c"}, {"k": 1, "v": "a", "_kind": "-D"},
         {"k": 4, "v": "d", "_kind": "-U"}, {"k": 2, "v": "b2", "_kind": "+U"}, {"k": 5, "v": "e", "_kind": "-D"}]  # fmt: skip

SCRIPTS: dict[str, tuple[Kind, list]] = {
    "overwrite-all-of-a-keyed-table": (KEYED, [("write", keyed(*range(9))), ("overwrite", {}, keyed(1, 2, v="new")), ("write", keyed(2, 3))]),
    "overwrite-with-nothing": (KEYED, [("write", keyed(1, 2)), ("overwrite", {}, []), ("write", keyed(3))]),
    "overwrite-one-partition": (
        PARTED,
        [("write", parted(1, "a", 1, 2) + parted(2, "b", 1)), ("overwrite", {"p": "1", "q": "a"}, parted(1, "a", 3)), ("write", parted(1, "a", 1))],
    ),
    "overwrite-a-part-of-the-keys": (
        PARTED,
        [("write", parted(1, "a", 1) + parted(1, "b", 1) + parted(2, "a", 1)), ("overwrite", {"p": "1"}, parted(1, "c", 3))],
    ),
    "overwrite-dynamic": (
        PARTED,
        [("write", parted(1, "a", 1, 2) + parted(2, "b", 1)), ("overwrite", "dynamic", parted(2, "b", 7) + parted(3, "c", 1))],
    ),
    "overwrite-append": (APPEND, [("write", appended(1, "a", "b") + appended(2, "c")), ("overwrite", "dynamic", appended(1, "n")), ("overwrite", {"p": "2"}, [])]),
    "overwrite-null-partition": (APPEND, [("write", appended(None, "a") + appended(2, "c")), ("overwrite", "dynamic", appended(None, "n"))]),
    "overwrite-bucketed-append": (BUCKETED, [("write", keyed(*range(9))), ("overwrite", {}, keyed(1, 1, 2))]),
    "truncate": (KEYED, [("write", keyed(1, 2)), ("truncate",), ("write", keyed(3)), ("truncate",)]),
    "drop-partitions": (
        PARTED,
        [("write", parted(1, "a", 1) + parted(1, "b", 1) + parted(2, "a", 1)), ("drop", [{"p": "2", "q": "a"}]), ("write", parted(2, "a", 5)), ("drop", [{"p": "1", "q": "b"}, {"p": "2", "q": "a"}])],
    ),
    "row-kinds": (KEYED, [("write", KINDS), ("write", keyed(1, 4)), ("write", KINDS[3:])]),
    "ignore-delete": (
        Kind(KEYED.columns, ["k"], options={**KEYED.options, "ignore-delete": "true"}),
        [("write", keyed(1, 2, 3, 4)), ("write", KINDS), ("write", [{"k": 3, "v": "x", "_kind": "-D"}])],
    ),
    "rowkind-field": (
        Kind([["k", "INT NOT NULL"], ["v", "STRING"], ["op", "STRING"]], ["k"], options={**KEYED.options, "rowkind.field": "op"}),
        [("write", [{"k": 1, "v": "a", "op": "+I"}, {"k": 2, "v": "b", "op": "+U"}]), ("write", [{"k": 1, "v": "a", "op": "-D"}, {"k": 3, "v": "c", "op": "-U"}])],
    ),
    "watermarks": (KEYED, [("write", keyed(1), {"watermark": 1000}), ("write", keyed(2)), ("write", keyed(3), {"watermark": 500}), ("write", keyed(4), {"watermark": 3000})]),
    "tags": (KEYED, [("write", keyed(1)), ("tag", "one"), ("write", keyed(2)), ("tag", "two"), ("overwrite", {}, keyed(9)), ("tag", "all gone")]),
    "only-keys": (Kind([["a", "STRING NOT NULL"], ["b", "INT NOT NULL"]], ["b", "a"], options=KEYED.options), [("write", [{"a": "x", "b": 1}, {"a": "x", "b": 2}]), ("write", [{"a": "x", "b": 1, "_kind": "-D"}, {"a": "y", "b": 1}])]),
    "delete-everything": (KEYED, [("write", keyed(1, 2)), ("write", [{**row, "_kind": "-D"} for row in keyed(1, 2)]), ("write", keyed(2, v="back"))]),
    "thin-files": (Kind(KEYED.columns, ["k"], options={**KEYED.options, "data-file.thin-mode": "true"}), [("write", keyed(*range(9))), ("write", KINDS)]),
    "compression": (Kind(KEYED.columns, ["k"], options={**KEYED.options, "file.compression": "gzip"}), [("write", keyed(*range(9))), ("write", KINDS)]),
    "suffix-with-compression": (Kind(APPEND.columns, [], ["p"], {**APPEND.options, "file.suffix.include.compression": "true", "data-file.prefix": "part-"}), [("write", appended(1, "a")), ("write", appended(2, "b"))]),
    "format-per-level": (Kind(KEYED.columns, ["k"], options={**KEYED.options, "file.format.per.level": "0:avro,5:orc"}), [("write", keyed(*range(9))), ("write", KINDS)]),
    "data-directory": (Kind(KEYED.columns, ["k"], options={**KEYED.options, "data-file.path-directory": "data"}), [("write", keyed(*range(9))), ("write", KINDS)]),
}  # fmt: skip

SEQUENCE_ROWS = [
    [{"k": 1, "v": "a", "s": 5, "t": "2024-01-01T00:00:00.001"}, {"k": 2, "v": "b", "s": None, "t": None}, {"k": 1, "v": "c", "s": 3, "t": None}],
    [{"k": 1, "v": "d", "s": 5, "t": "2024-01-01T00:00:00.000"}, {"k": 2, "v": "e", "s": 1, "t": None}, {"k": 3, "v": "f", "s": 9, "_kind": "-D"}],
    [{"k": 1, "v": "g", "s": None, "t": None}, {"k": 2, "v": "h", "s": 1, "t": None}, {"k": 3, "v": "i", "s": 8}, {"k": 1, "v": "j", "s": 5, "_kind": "-D"}],
]  # fmt: skip


def compacted_alike(pairs: dict) -> None:
    """A full compaction by Java changes no row."""
    for turn, pair in pairs.items():
        before = pair.agree()
        pair.step("compact", options={"write-only": "false"})
        assert difference(pair.columns(), before, pair.agree()) is None, f"{turn}: Java's compaction lost or changed rows"


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_ends_alike_whoever_plays_it(name, java, tmp_path):
    kind, script = SCRIPTS[name]
    pairs = play(java("2.0.0"), tmp_path, kind, script)
    same_histories(pairs)
    same_metadata(pairs)
    if kind.primary_key:
        compacted_alike(pairs)


OLDER = [(name, version) for name in ("overwrite-one-partition", "overwrite-dynamic", "row-kinds", "ignore-delete", "tags") for version in ("1.4.2", "0.9.0")]


@pytest.mark.parametrize(("name", "version"), [*OLDER, ("drop-partitions", "1.4.2")])
def test_a_script_ends_alike_with_older_javas(name, version, java, tmp_path):
    kind, script = SCRIPTS[name]
    pairs = play(java(version), tmp_path, kind, script)
    same_histories(pairs)
    compacted_alike(pairs)


@pytest.mark.parametrize("order", ["ascending", "descending"])
@pytest.mark.parametrize("fields", ["s", "t", "s,t", "t,s"])
def test_sequence_fields_decide_alike(fields, order, java, tmp_path):
    columns = [["k", "INT NOT NULL"], ["v", "STRING"], ["s", "INT"], ["t", "TIMESTAMP(3)"]]
    options = {**KEYED.options, "sequence.field": fields, "sequence.field.sort-order": order}
    script = [("write", rows) for rows in SEQUENCE_ROWS]
    pairs = play(java("2.0.0"), tmp_path, Kind(columns, ["k"], options=options), script)
    same_histories(pairs)
    same_metadata(pairs)
    compacted_alike(pairs)


def test_time_travel_leads_to_the_same_rows(java, tmp_path):
    script = [("write", keyed(1), {"watermark": 1000}), ("tag", "one"), ("alter", ["add", "w", "INT"]),
              ("write", [{"k": 2, "v": "x", "w": 5}], {"watermark": 2000}), ("tag", "two"), ("overwrite", {}, [{"k": 9, "w": 1}])]  # fmt: skip
    pairs = play(java("2.0.0"), tmp_path, KEYED, script)
    states = same_histories(pairs)
    for pair in pairs.values():
        snapshots = pair.table().snapshots()
        assert [tag.name for tag in pair.table().tags()] == ["one", "two"]
        ways = [("tag", "scan.tag-name", "one", 1), ("tag", "scan.tag-name", "two", 2)]
        ways += [("watermark", "scan.watermark", mark, number) for mark, number in ((1, 1), (1000, 1), (1001, 2), (2000, 2))]
        ways += [("timestamp", "scan.timestamp-millis", s.time_millis, s.id) for s in snapshots]
        theirs = pair.steps([{"op": "read", "options": {option: str(value)}} for _, option, value, _ in ways])
        for (argument, _, value, number), rows in zip(ways, theirs, strict=True):
            columns, want = states[number]
            where = f"{pair.name} {argument}={value}"
            assert difference(columns, want, canonical_rows(columns, rows)) is None, f"Java: {where}"
            assert difference(columns, want, pair.our_rows(columns, **{argument: value})) is None, f"we: {where}"
