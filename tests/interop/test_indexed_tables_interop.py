"""Tables with file indexes that we, Java, or both in turn have written: neither loses a row by the other's indexes."""

from __future__ import annotations

import random

import golden
import pytest
from filters import predicate
from pair import Kind, Pair
from test_file_index_interop import some_value
from values import canonical_rows

from paimon_py import RemoveOption, RenameColumn, SetOption, col
from paimon_py.spec.file_indexes import allows
from paimon_py.spec.type_text import parse_type

TYPES = ["BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(5, 2)", "DATE", "TIME(3)", "STRING",
         "VARCHAR(40)", "BYTES", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(6) WITH LOCAL TIME ZONE"]  # fmt: skip
COLUMNS = [["k", "INT NOT NULL"], *([f"c{number}", kind] for number, kind in enumerate(TYPES))]
ALL = ("bloom-filter", "bitmap", "bsi", "range-bitmap")
KINDS = {"2.0.0": ALL, "1.4.2": ALL, "0.9.0": ("bloom-filter", "bitmap")}
FAILS = {"0.9.0": ("BOOLEAN", "TINYINT", "SMALLINT")}
"""Types of which Java fails to write its own bitmaps, or to filter (ClassCastException)."""

JAVA_ERRS = ("c5", "c6")
"""Floats: the statistics that Java keeps beside NaN make it lose rows, with indexes and without."""


def options_of(version: str, dice: random.Random) -> dict[str, str]:
    """Each kind of index on some of the columns that it takes."""
    options = {"file-index.in-manifest-threshold": dice.choice(["0 b", "500 b", "10 mb"]), "file.format": dice.choice(["parquet", "orc"])}
    kinds = KINDS[version]
    for kind in kinds:
        able = [name for name, text in COLUMNS if allows(kind, parse_type(text)) and text not in FAILS.get(version, ())]
        chosen = [name for name in able if dice.random() < 0.7] or able[:1]
        options[f"file-index.{kind}.columns"] = ",".join(chosen)
        for name in chosen:
            if kind == "bloom-filter":
                options[f"file-index.{kind}.{name}.items"] = "100"
            elif kind == "bitmap" and (len(kinds) == 2 or dice.random() < 0.3):
                options[f"file-index.{kind}.{name}.version"] = "1"
    return options


def cell(kind: str, dice: random.Random):
    """A value that every file format takes and Java's ORC finds again (no old dates), in golden's notation."""
    value = some_value(kind, dice)
    if kind == "BIGINT":
        return int(value)
    if kind == "DATE":
        return value.replace("0001-", "1977-")
    return value.replace("1969-", "1971-").replace("1901-", "1999-") if kind.startswith("TIMESTAMP(6)") else value


def rows_of(count: int, first_key: int, pools: dict, dice: random.Random) -> list[dict]:
    return [
        {"k": first_key + number, **{name: None if dice.random() < 0.15 else dice.choice(pool) for name, pool in pools.items()}}
        for number in range(count)
    ]


def filters_of(pools: dict, dice: random.Random, count: int) -> list[list]:
    def leaf(errs: tuple[str, ...] = ()):
        name = dice.choice([name for name in pools if name not in errs])
        a, b = dice.choice(pools[name]), dice.choice(pools[name])
        kind = dict(COLUMNS)[name]
        op = dice.choice(["=", "=", "in", "isNull", "isNotNull", "!=", "notIn", "<", "<=", ">", ">=", "between"])
        if kind in ("BYTES", "BOOLEAN"):
            op = dice.choice(["=", "isNull"])
        if op in ("isNull", "isNotNull"):
            return [op, name]
        return [op, name, [a, b]] if op in ("in", "notIn") else [op, name, a, b] if op == "between" else [op, name, a]

    trees = []
    for _ in range(count):
        shape = dice.choice(["leaf", "leaf", "and", "or"])
        trees.append(leaf() if shape == "leaf" else [shape, leaf(JAVA_ERRS), leaf(JAVA_ERRS)])
    return trees


def life(java, tmp_path, version: str, seed: int, turns: str, keyed: bool, count: int) -> Pair:
    dice = random.Random(seed)
    pools = {name: [cell(kind, dice) for _ in range(5)] for name, kind in COLUMNS[1:]}
    options = options_of(version, dice)
    kind = Kind(COLUMNS, ["k"] if keyed else [], [], {**options, **({"bucket": "1"} if keyed else {"bucket": "-1"})})
    pair = Pair(java(version), tmp_path)
    pair.create(kind, turns[0])
    rows: dict[int, dict] = {}
    bag: list[dict] = []
    for number in range(4):
        piece = rows_of(30, number * (20 if keyed else 30), pools, dice)
        pair.act(("write", piece), turns[number % len(turns)])
        rows |= {row["k"]: row for row in piece}
        bag += piece
    want = canonical_rows(COLUMNS, list(rows.values()) if keyed else bag)
    asked = {name: pool for name, pool in pools.items() if dict(COLUMNS)[name] not in FAILS.get(version, ())}
    filters = filters_of(asked, dice, count)
    pair.check_filters(filters, want, JAVA_ERRS)
    pair.act(("compact", True), turns[-1])
    pair.check_filters(filters, want, JAVA_ERRS)
    return pair


@pytest.mark.parametrize("keyed", [False, True], ids=["append", "keyed"])
@pytest.mark.parametrize("version", KINDS)
def test_nobody_loses_rows_by_the_indexes_of_the_other(java, tmp_path, version, keyed):
    for seed, turns in enumerate(("o", "j") if version == "2.0.0" else ("oj",)):
        life(java, tmp_path / turns, version, seed + 10 * keyed, turns, keyed, 6)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("version", KINDS)
def test_nobody_loses_rows_by_the_indexes_of_the_other_in_many_lives(java, tmp_path, version, seed):
    life(java, tmp_path, version, 100 + seed, ("o", "j", "oj", "jo")[seed % 4], seed % 3 == 0, 40)


@pytest.mark.parametrize("by", ["o", "rewrite", "j"])
def test_java_skips_rows_by_our_indexes_as_by_its_own(java, tmp_path, by):
    columns = [["k", "INT NOT NULL"], ["v", "INT"], ["s", "STRING"], ["m", {"type": "MAP", "key": "STRING NOT NULL", "value": "INT"}]]
    options = {"file-index.bsi.columns": "v", "file-index.bitmap.columns": "s,m[a]", "file-index.bloom-filter.columns": "k",
               "file-index.bloom-filter.k.items": "100", "file.format": "orc", "file-index.in-manifest-threshold": "0 b"}  # fmt: skip
    pair = Pair(java("2.0.0"), tmp_path)
    pair.create(Kind(columns, [], [], {"bucket": "-1", **({} if by == "rewrite" else options)}), "j" if by == "j" else "o")
    rows = [{"k": n * 3, "v": n % 7 - 3 if n % 5 else None, "s": f"s{n % 4}", "m": [["a", n % 3]]} for n in range(90)]
    for piece in (rows[:50], rows[50:]):
        pair.act(("write", piece), "j" if by == "j" else "o")
    if by == "rewrite":
        pair.table().alter(*(SetOption(name, text) for name, text in options.items()))
        assert pair.table().rewrite_file_index().snapshot_id == 3
        assert len(list(pair.path.rglob("*.index"))) == 2
    trees = [["=", "v", 2], ["<", "v", -1], ["=", "s", "s1"], ["isNull", "v"], ["and", [">", "v", 0], ["=", "s", "s3"]], ["=", "k", 4]]
    types = {name: golden.parse_type(kind) for name, kind in columns}
    for tree, theirs in zip(trees, pair.steps([{"op": "read", "filter": tree} for tree in trees]), strict=True):
        matching = sum(bool(golden.matches(dict(zip(types, row)), tree, types)) for row in canonical_rows(columns, rows))
        plan = pair.table().scan(where=predicate(tree, types)).explain()
        assert len(theirs) == matching, tree
        gone = sum(file.row_count for split in plan.splits for file in split.files) - plan.index_rows
        assert gone == matching, (tree, plan)
    pair.check_filters(trees, canonical_rows(columns, rows))
    pair.act(("compact", True), "j")
    pair.check_filters(trees, canonical_rows(columns, rows))
    assert pair.table().scan(where=col("v") == 2).explain().index_rows > 0


@pytest.mark.parametrize("way", ["renamed", "added by Java"])
def test_java_reads_older_states_without_the_index_of_a_column_that_they_lack(java, tmp_path, way):
    """Java 2.0 looks for the columns of today's indexes in the schema of the state: docs/file-indexes.md says so."""
    columns = [["k", "INT"], ["a", "INT"]]
    options = {"bucket": "-1", **({"file-index.bitmap.columns": "a"} if way == "renamed" else {})}
    pair = Pair(java("2.0.0"), tmp_path)
    pair.create(Kind(columns, [], [], options), "o")
    pair.act(("write", [{"k": 1, "a": 1}, {"k": 2, "a": 3}]), "o")
    if way == "renamed":
        changes = [["rename", "a", "b"]]
        (refused,) = pair.steps([{"op": "alter", "changes": changes, "expectError": True}], check=False)
        assert "does not exist in table schema" in refused["error"]
        pair.table().alter(RenameColumn("a", "b"))
    else:
        pair.steps([{"op": "alter", "changes": [["add", "b", "INT"]]}])
        pair.steps([{"op": "alter", "changes": [["set", "file-index.bitmap.columns", "b"]]}])
    older = {"op": "read", "options": {"scan.snapshot-id": "1"}, "filter": ["=", "a", 1]}
    (latest, failed) = pair.steps([{"op": "read"}, {**older, "expectError": True}], check=False)
    assert len(latest["result"]) == 2 and "does not exist in table schema" in failed["error"]
    assert pair.table().scan(snapshot_id=1, where="a = 1").to_arrow()["k"].to_pylist() == [1]
    pair.table().alter(RemoveOption("file-index.bitmap.columns"))
    (found,) = pair.steps([older])
    assert 1 in [row["k"] for row in found]
