"""Primary-key tables with the newest switches of Java 2.0: keys sorted by other columns, indexes over values."""

from __future__ import annotations

import random

import pytest
from pair import Kind, Pair

from paimon_py import UnsupportedError
from paimon_py.commit.key_indexes import sources_of

pytestmark = pytest.mark.java

COLUMNS = [["k", "INT NOT NULL"], ["v", "INT"], ["s", "STRING"], ["p", "INT NOT NULL"]]
CONDITIONS = {
    "v = 2": lambda row: row["v"] == 2,
    "k = 7": lambda row: row["k"] == 7,
    "k < 5 AND v > 1": lambda row: row["k"] < 5 and row["v"] is not None and row["v"] > 1,
    "s = 's1'": lambda row: row["s"] == "s1",
}


def by_text(rows):
    return sorted(({name: row[name] for name, _ in COLUMNS} for row in rows), key=repr)


def some_rows(rng: random.Random, *, deletes: bool) -> list[dict]:
    kinds = ("+I", "+I", "+I", "-D") if deletes else ("+I",)
    return [
        {"k": rng.randrange(30), "v": rng.choice([None, *range(6)]), "s": f"s{rng.randrange(4)}", "p": rng.randrange(2), "_kind": rng.choice(kinds)}
        for _ in range(rng.randrange(1, 25))
    ]


def check_conditions(table, rows) -> None:
    for text, holds in CONDITIONS.items():
        wanted = by_text(filter(holds, rows))
        assert by_text(table.scan(where=text).to_arrow().to_pylist()) == wanted, text
        assert table.scan(where=text).count() == len(wanted)


def play_clustered(java, tmp_path, seed: int) -> None:
    rng = random.Random(seed)
    pair, first = Pair(java("2.0.0"), tmp_path), seed % 3 == 0
    engine = {"merge-engine": "first-row"} if first else {"deletion-vectors.enabled": "true"}
    options = {"bucket": "2", "pk-clustering-override": "true", "clustering.columns": rng.choice(["v", "s,v", "v,k"]), "file.format": rng.choice(["parquet", "orc", "avro"])}
    pair.create(Kind(COLUMNS, ["p", "k"], ["p"] if seed % 2 else [], {**options, **engine}), "j")
    for _ in range(6):
        how = {"options": {"write-only": "true"}} if rng.random() < 0.3 else {"compact": rng.choice(["full", "normal"])}
        pair.step("write", rows=some_rows(rng, deletes=not first), **how)
        table, theirs = pair.table(), by_text(pair.step("read"))
        assert by_text(table.to_arrow().to_pylist()) == theirs and table.count() == len(theirs)
        check_conditions(table, theirs)
        keys = [{"p": p, "k": k} for p in (0, 1) for k in range(30)]
        assert by_text(table.lookup(keys).to_pylist()) == theirs
        assert table.lookup(keys, columns=["v"], missing="null").num_rows == 60
        if 0 in table.levels()["level"].to_pylist():
            with pytest.raises(UnsupportedError, match="rows that are not compacted yet.* from_='latest'"):
                table.stream().poll()
        else:
            streamed = [row for step in table.stream(until="now") for batch in step.to_reader() for row in batch.to_pylist()]
            assert by_text(streamed) == theirs
    for refused in (lambda: table.delete("true"), lambda: table.write_arrow([]), lambda: table.compact(full=True)):
        with pytest.raises(UnsupportedError, match="pk-clustering-override"):
            refused()
    with pytest.raises(UnsupportedError, match="mode='delta'"):
        table.changes(0, mode="diff").to_arrow()


def play_indexed(java, tmp_path, seed: int) -> None:
    """Java finds rows by the indexes that are left when we have written and compacted."""
    rng = random.Random(seed)
    pair, model = Pair(java("2.0.0"), tmp_path), {}
    indexes = rng.choice([{"pk-btree.index.columns": "v,s"}, {"pk-bitmap.index.columns": "v"}, {"pk-btree.index.columns": "v", "pk-bitmap.index.columns": "s"}])
    pair.create(Kind(COLUMNS, ["k"], [], {"bucket": "2", "deletion-vectors.enabled": "true", **indexes}), rng.choice("oj"))
    for _ in range(8):
        rows = [{**row, "_kind": "+I"} for row in some_rows(rng, deletes=False)]
        how = rng.random()
        if how < 0.4:
            pair.our_write([{name: value for name, value in row.items() if name != "_kind"} for row in rows])
        elif how < 0.9:
            pair.step("write", rows=rows, compact=rng.choice(["full", "normal"]))
        else:
            rows, model = [], {key: row for key, row in model.items() if row["v"] != 3}
            pair.table().delete("v = 3")
        model |= {row["k"]: row for row in rows}
        if rng.random() < 0.4:
            pair.table().compact(full=rng.random() < 0.6)
        theirs = by_text(pair.step("read"))
        assert by_text(pair.table().to_arrow().to_pylist()) == theirs
        check_conditions(pair.table(), theirs)
        for tree, holds in ((["=", "v", 2], CONDITIONS["v = 2"]), (["=", "s", "s1"], CONDITIONS["s = 's1'"])):
            assert by_text(pair.step("read", filter=tree, executeFilter=True)) == by_text(filter(holds, theirs))
        check_sources(pair)
    pair.table().compact(full=True)
    assert by_text(pair.table().to_arrow().to_pylist()) == by_text(pair.step("read")) == by_text(model.values())


def check_sources(pair: Pair) -> None:
    """Every index that is left was made of files that are alive, all those of their level."""
    table = pair.table()
    snapshot = table._root.snapshots.latest()
    if snapshot is None or snapshot.index_manifest is None:
        return
    live = [(entry["bucket"], entry["level"], entry["fileName"]) for entry in pair.step("files", mode="all")]
    for entry in table._root.manifests.read_index(snapshot.index_manifest):
        if entry.global_index is not None:
            found = sources_of(entry.global_index.source_meta)
            assert found.names == {name for bucket, level, name in live if (bucket, level) == (entry.bucket, found.level)}


@pytest.mark.parametrize("seed", range(3))
def test_keys_sorted_by_other_columns_read_as_in_java(java, tmp_path, seed):
    play_clustered(java, tmp_path, seed)


@pytest.mark.parametrize("seed", range(2))
def test_indexes_of_levels_that_changed_are_gone(java, tmp_path, seed):
    play_indexed(java, tmp_path, seed)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(10, 40))
@pytest.mark.parametrize("play", [play_clustered, play_indexed])
def test_many_lives_of_the_newest_keys(java, tmp_path, play, seed):
    play(java, tmp_path, seed)
