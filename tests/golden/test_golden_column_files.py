"""Java's tables with data evolution in every way of reading: limits, orders, ids, differences, and what is opened."""

from __future__ import annotations

import golden
import pytest
from locate import CORPUS

from paimon_py import Catalog, UnsupportedError

CASES = [case for case in golden.cases(str(CORPUS)) if "data-evolution" in case.tags and case.stage <= 6 and case.name != "blob-descriptors"]


def opened(case, tmp_path):
    return Catalog.open(golden.unpack(case, tmp_path)).table(case.table)


def tuples(scan):
    return sorted((tuple(row.values()) for row in scan.to_arrow().to_pylist()), key=repr)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_way_of_reading_gives_the_same_rows(case, tmp_path):
    table = opened(case, tmp_path)
    for snapshot in [one.id for one in table.snapshots()][-4:]:
        names = table.scan(snapshot_id=snapshot).schema.names
        whole = table.scan(snapshot_id=snapshot, columns=[*names, "_ROW_ID"]).to_arrow()
        rows = sorted((tuple(row.values()) for row in whole.to_pylist()), key=repr)
        ids = whole["_ROW_ID"].to_pylist()
        assert len(set(ids)) == len(ids)
        for limit in (1, 2, len(ids)):
            some = table.scan(snapshot_id=snapshot, limit=limit, columns=[*names, "_ROW_ID"])
            assert some.to_arrow().num_rows == some.count() == min(limit, len(ids)) and set(map(repr, tuples(some))) <= set(map(repr, rows))
        chosen = ids[::-2]
        found = table.scan(snapshot_id=snapshot, row_ids=chosen, columns=[*names, "_ROW_ID"]).to_arrow()
        assert found["_ROW_ID"].to_pylist() == chosen
        assert sorted((tuple(row.values()) for row in found.to_pylist()), key=repr) == [row for row in rows if row[-1] in chosen]
        first = table.scan(snapshot_id=snapshot, order_by=[("_ROW_ID", "descending")], limit=3, columns=["_ROW_ID"]).to_arrow()
        assert first["_ROW_ID"].to_pylist() == sorted(ids, reverse=True)[:3]
        for name in names:
            alone = table.scan(snapshot_id=snapshot, columns=["_ROW_ID", name]).to_arrow()
            assert sorted(alone.to_pylist(), key=repr) == sorted(whole.select(["_ROW_ID", name]).to_pylist(), key=repr)
            values = [value for value in whole[name].to_pylist() if value is not None]
            nulls = table.scan(snapshot_id=snapshot, where=f"`{name}` IS NULL")
            assert nulls.count() == len(ids) - len(values)
            if any(isinstance(value, (list, bytes)) for value in values):
                continue
            top = table.scan(snapshot_id=snapshot, order_by=name, limit=2).to_arrow()[name].to_pylist()
            assert top == (sorted(values) + [None] * len(ids))[: min(2, len(ids))]
        splits = table.scan(snapshot_id=snapshot).splits()
        assert sum(table.scan(snapshot_id=snapshot).read(bytes(split)).read_all().num_rows for split in splits) == len(ids)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_difference_of_two_states_is_exact(case, tmp_path):
    table = opened(case, tmp_path)
    snapshots = [one.id for one in table.snapshots()]
    for before, after in zip(snapshots, snapshots[1:]):
        latest = table._root.schemas.latest().id  # rows of both states have its columns
        if {table.snapshot(one).value.schema_id for one in (before, after)} != {latest}:
            continue
        old, new = tuples(table.scan(snapshot_id=before)), tuples(table.scan(snapshot_id=after))
        for row in table.changes(before, after, mode="diff").to_arrow().to_pylist():
            kind = row.pop("_row_kind")
            if kind == "+I":
                old.append(tuple(row.values()))
            else:
                old.remove(tuple(row.values()))
        assert sorted(old, key=repr) == new


def test_only_files_of_wanted_columns_are_opened(tmp_path):
    case = next(case for case in CASES if case.name == "evolve-columns-parquet")
    table = opened(case, tmp_path)
    files = {row["file_path"]: row["write_cols"] for row in table.system("files").scan().to_arrow().to_pylist()}
    plan = table.scan(columns=["n"]).explain(analyze=True)
    assert plan.file_count == len(files) > plan.analysis.files_opened
    assert table.scan(columns=["_ROW_ID"]).explain(analyze=True).analysis.files_opened == 0
    assert table.scan(columns=[]).explain(analyze=True).analysis.files_opened == 0


def test_streams_return_rows_whose_columns_were_set(tmp_path):
    table = opened(next(case for case in CASES if case.name == "evolve-stream"), tmp_path)
    stream = table.stream(from_=1)
    assert stream.poll().to_arrow().num_rows == 2
    assert stream.poll().to_arrow()["_row_kind"].to_pylist() == ["-U", "-U", "+U", "+U"]
    with pytest.raises(UnsupportedError, match="snapshot 2 .* set columns of existing rows.*mode='auto'"):
        table.changes(1, 3, mode="delta").to_arrow()
    assert table.changes(2, 3, mode="delta").to_arrow().num_rows == 2
    assert table.changes(1, 2, mode="diff").to_arrow()["_row_kind"].to_pylist() == ["-D", "-D", "+I", "+I"]


@pytest.mark.parametrize("case", [case for case in golden.cases(str(CORPUS)) if case.name == "global-partitioned"], ids=lambda case: case.name)
def test_columns_with_an_index_over_row_ids_are_not_set(case, tmp_path):
    table = opened(case, tmp_path)
    before = tuples(table.scan())
    for verb in (lambda: table.update("true", {"n": 1}), lambda: table.upsert([{"id": 1, "n": 2, "p": "a"}], on=["id", "p"])):
        with pytest.raises(UnsupportedError, match="column n has an index over row ids"):
            verb()
    assert tuples(opened_again(table).scan()) == before


def opened_again(table):
    return type(table).open(table.location)
