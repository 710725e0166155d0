"""System tables of random tables: the columns, types and rows that Java tells, whoever wrote the table."""

from __future__ import annotations

import json

import golden
import pyarrow as pa
import pytest
import table_scripts
from engine_play import play
from filters import predicate
from pair import Kind, Pair
from values import canonical_rows, difference, ours

from paimon_py import AddColumn, Catalog
from paimon_py.spec.type_text import parse_type, sql_type

pytestmark = pytest.mark.java

SCRIPTS = {script.about: script for script in table_scripts.cells()}
QUICK = ("fixed vectors: merge", "dynamic: delete", "files in parts: index")
VERSIONS = {"2.0.0": range(150), "1.4.2": range(150, 180), "0.9.0": range(180, 200)}
NANOS = {("tags", "create_time")}
"""Java's values have nanoseconds, though the type of the column says milliseconds."""

BOUNDS = ("min_value_stats", "max_value_stats")
"""Of bytes Java prints where it holds them in memory."""

TABLES = (
    "snapshots", "schemas", "options", "aggregation_fields", "tags", "branches", "consumers", "statistics", "files",
    "file_key_ranges", "buckets", "partitions", "manifests", "table_indexes",
)  # fmt: skip
OF_STATES = ("files", "file_key_ranges", "partitions", "manifests", "table_indexes", "statistics")
ABSENT = {"0.9.0": {"buckets", "table_indexes", "file_key_ranges"}, "1.4.2": {"file_key_ranges"}}
OTHER_TEXTS = {"0.9.0": ("partition", "file_path")}
"""Columns that an older Java prints in another way; it does not tell of earlier states, either."""

FILTERS = {
    "files": [["=", "bucket", 0], [">", "level", 0], ["and", ["=", "bucket", 1], ["=", "level", 0]]],
    "buckets": [[">", "bucket", 0]],
    "snapshots": [["=", "snapshot_id", 2], ["and", [">", "snapshot_id", 1], ["<=", "snapshot_id", 3]], ["=", "commit_kind", "COMPACT"]],
    "schemas": [["=", "schema_id", 0]],
    "options": [["=", "key", "bucket"]],
}  # fmt: skip


def in_order(name: str, columns: list, rows: list[list]) -> list[list]:
    """Rows with options in the order of their names: Java shows them as they lie in a hash table."""
    at = {column: place for place, (column, _) in enumerate(columns)}
    for row in rows:
        if name == "schemas":
            row[at["options"]] = json.dumps(json.loads(row[at["options"]]), sort_keys=True)
        for column in ("function", "function_options") if name == "aggregation_fields" else ():
            row[at[column]] = sorted(row[at[column]][1:-1].split(", "))
    return rows


def check(pair: Pair, name: str, version: str, snapshot_id: int | None = None, branch: str | None = None) -> int:
    """Compare one system table, as it is and filtered; gives the number of rows."""
    of = pair.name if branch is None else f"{pair.name}$branch_{branch}"
    full = f"{of}${name}" if name in TABLES else name
    options = {} if snapshot_id is None else {"options": {"scan.snapshot-id": str(snapshot_id)}}
    outputs = pair.java.run(
        str(pair.warehouse), [{"op": "schema", "table": full}, {"op": "read", "table": full, **options}], check=True
    )
    columns, rows = (output["result"] for output in outputs)
    columns = [[column["name"], column["type"]] for column in columns["fields"]]
    table = Catalog.open(str(pair.warehouse)).table(full)
    stated = {field.name: sql_type(field.type) for field in table.schema.fields}
    other = OTHER_TEXTS.get(version, ())
    mine = [[column, kind] for column, kind in columns if column in stated and column not in other]
    if version == "2.0.0":
        assert [column for column, _ in columns] == list(stated), name
        wrong = {
            column: (kind, stated[column])
            for column, kind in columns
            if parse_type(stated[column]) != parse_type(kind) and (name, column) not in NANOS
        }
        assert wrong == {}, name
    if any("[B@" in str(row.get(column)) for row in rows for column in BOUNDS):
        mine = [[column, kind] for column, kind in mine if column not in BOUNDS]
    names = [column for column, _ in mine]
    scan = {} if snapshot_id is None else {"snapshot_id": snapshot_id}
    theirs = in_order(name, mine, canonical_rows(mine, rows))
    got = in_order(name, mine, ours(mine, table.scan(columns=names, **scan).to_arrow()))
    if snapshot_id is not None and names[0] == "partition" and name != "partitions":
        listed = {row[0] for row in theirs}  # Java leaves out partitions that the latest snapshot does not have
        got = [row for row in got if row[0] in listed]
    assert difference(mine, theirs, got) is None, f"${name}: {difference(mine, theirs, got)}"
    types = {column: golden.parse_type(kind) for column, kind in mine}
    for tree in FILTERS.get(name, []) if snapshot_id is None else []:
        want = [row for row in theirs if golden.matches(dict(zip(types, row)), tree, types)]
        found = in_order(name, mine, ours(mine, table.scan(columns=names, where=predicate(tree, types)).to_arrow()))
        assert difference(mine, want, found) is None, f"${name} by {tree}"
    return len(theirs)


def tell(pair: Pair, version: str) -> None:
    """Give the table a tag, one that is kept for a time, and a consumer; compare all that is told."""
    if pair.table().snapshot() is None:
        return
    ids = [snapshot.id for snapshot in pair.table().snapshots()]
    pair.table().create_tag("t1", snapshot_id=ids[0])
    pair.step("tag", name="t2", retained="PT36H30M")
    pair.step("consumer", name="c", next=ids[-1])
    known = [name for name in TABLES if name not in ABSENT.get(version, ())]
    assert sum(check(pair, name, version) for name in known) >= len(ids)
    for name in known:
        if name in OF_STATES and version not in OTHER_TEXTS:
            check(pair, name, version, ids[len(ids) // 2])


@pytest.mark.parametrize("about", QUICK)
def test_what_system_tables_tell_is_what_java_tells(java, tmp_path, about):
    for played in play(java("2.0.0"), tmp_path, SCRIPTS[about], turns=("oj",)).values():
        tell(played.pair, "2.0.0")


def test_tables_of_all_tables_are_those_of_java(java, tmp_path):
    pair = Pair(java("2.0.0"), tmp_path)
    columns = [["d", "DATE NOT NULL"], ["s", "STRING NOT NULL"], ["k", "INT NOT NULL"]]
    pair.create(Kind(columns, ["d", "s", "k"], ["d", "s"], {"bucket": "1"}), "j")
    rows = [{"d": "2024-01-01", "s": "a b/c", "k": 1}, {"d": "1969-12-31", "s": "", "k": 2}]
    pair.step("write", rows=rows)
    Pair(pair.java, tmp_path, "u").create(Kind([["k", "INT"]]), "o")
    for name in ("sys.tables", "sys.partitions", "sys.all_table_options"):
        assert check(pair, name, "2.0.0") >= 2, name
    for name in ("partitions", "files", "buckets", "manifests"):
        check(pair, name, "2.0.0")


def test_a_branch_is_told_of_as_java_tells_of_it(java, tmp_path):
    pair = Pair(java("2.0.0"), tmp_path)
    pair.create(Kind([["p", "STRING NOT NULL"], ["k", "INT NOT NULL"]], ["p", "k"], ["p"], {"bucket": "1"}), "j")
    pair.step("write", rows=[{"p": "a", "k": 1}])
    pair.step("tag", name="t")
    pair.step("branch", action="create", name="b", tag="t")
    branch = pair.table().branch("b")
    branch.write_arrow(pa.table({"p": ["c"], "k": pa.array([1], pa.int32())}))
    branch.create_tag("of b")
    branch.analyze()
    assert {name: check(pair, name, "2.0.0", branch="b") for name in TABLES} == {
        **dict.fromkeys(TABLES, 2), "snapshots": 3, "schemas": 1, "options": 1, "branches": 1, "consumers": 0,
        "statistics": 1, "table_indexes": 0,
    }  # fmt: skip


@pytest.mark.parametrize("mode", ["truncate(16)", "none"])
def test_files_with_columns_of_rows_are_told_as_java_tells_them(java, tmp_path, mode):
    """Column files of both, BLOBs, deletion vectors, a later column: a row counts in each of its files, as in Java."""
    pair = Pair(java("2.0.0"), tmp_path)
    switched_on = dict.fromkeys(("row-tracking.enabled", "data-evolution.enabled", "deletion-vectors.enabled"), "true")
    columns = [["id", "INT"], ["n", "BIGINT"], ["v", "STRING"], ["image", "BLOB"]]
    pair.create(Kind(columns, options={"bucket": "-1", "metadata.stats-mode": mode, **switched_on}), "j")
    pair.step("write", rows=[{"id": n, "n": n, "v": "x", "image": "01"} for n in range(3)])
    table = pair.table()
    table.write_arrow([{"id": n, "n": n, "v": "x", "image": b"y"} for n in range(3, 5)])
    table.alter(AddColumn("x", "STRING"))
    table.update_rows(pa.table({"_ROW_ID": [1], "n": pa.array([None], pa.int64()), "x": ["new"]}))
    table.update("id = 4", {"image": b"z"})
    pair.step("write", rows=[{"v": f"w{n}"} for n in range(3)], writeColumns=["v"], firstRowId=0)
    table.delete("id = 2")
    tell(pair, "2.0.0")
    assert [(entry.added_rows, entry.deleted_rows, entry.rewritten_rows) for entry in reversed(pair.table().history())] == [
        (3, 0, 0), (2, 0, 0), (0, 0, 3), (0, 0, 2), (0, 0, 3), (0, 1, 0),
    ]  # fmt: skip
    assert pair.table().levels()["record_count"].to_pylist() == [5]


@pytest.mark.full
@pytest.mark.parametrize("shard", range(10))
@pytest.mark.parametrize("version", VERSIONS)
def test_random_tables_are_told_as_java_tells_them(java, tmp_path, version, shard):
    names = list(SCRIPTS)
    for number in VERSIONS[version][shard::10]:
        for played in play(java(version), tmp_path / str(number), SCRIPTS[names[number % len(names)]], turns=("oj",)).values():
            tell(played.pair, version)
