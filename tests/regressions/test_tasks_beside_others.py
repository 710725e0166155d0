"""A compaction task is carried out after others replaced its files or gave the files another index: a conflict, not damage."""

from __future__ import annotations

import pyarrow as pa
import pytest
from unit.public import KEYED, QUICK, env, new_catalog

from paimon_py import CommitConflictError, SetOption, Table


def rows(*keys, value="x"):
    return pa.table({"p": pa.array([1] * len(keys), pa.int32()), "k": list(keys), "v": [value] * len(keys)})


def fresh(table):
    return Table.open(table.location, QUICK, env=env())


def test_an_index_that_was_made_meanwhile(tmp_path):
    table = new_catalog(tmp_path / "w").create_table("d.t", KEYED)
    for key in range(4):
        table.write_arrow(rows(key))
    table.alter(SetOption("file-index.bloom-filter.columns", "k"))
    table = fresh(table)
    tasks = table.compaction_tasks(full=True)
    table.rewrite_file_index()
    changes = [table.run_compaction(task) for task in tasks]
    before = table.snapshot().id
    with pytest.raises(CommitConflictError, match="moved by another commit"):
        table.commit(changes)
    assert table.snapshot().id == before
    assert fresh(table).scan().to_arrow()["k"].to_pylist() == [0, 1, 2, 3]


def test_files_that_were_compacted_meanwhile(tmp_path):
    options = {"bucket": "1", "write-only": "true"}
    table = new_catalog(tmp_path / "w").create_table("d.t", KEYED, primary_key=["p", "k"], options=options)
    for key in range(3):
        table.write_arrow(rows(key))
    tasks = table.compaction_tasks(full=True)
    table.compact(full=True)
    changes = [table.run_compaction(task) for task in tasks]
    before = table.snapshot().id
    with pytest.raises(CommitConflictError, match="moved by another commit"):
        table.commit(changes)
    assert table.snapshot().id == before
    assert sorted(fresh(table).scan().to_arrow()["k"].to_pylist()) == list(range(3))


@pytest.mark.parametrize("joins", [True, False])
def test_columns_that_were_written_meanwhile(tmp_path, joins):
    """A task of a table that stores columns apart, beside an update of its rows."""
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "compaction.min.file-num": "2"}
    table = new_catalog(tmp_path / "w").create_table("d.t", KEYED, options=options)
    for key in range(1 + joins):
        table.write_arrow(rows(key))
    table.update("k = 0", {"v": "before"})
    tasks = table.compaction_tasks(full=True)
    assert tasks
    table.update("k = 0", {"v": "meanwhile"})
    changes = [table.run_compaction(task) for task in tasks]
    if joins:
        with pytest.raises(CommitConflictError, match="others wrote columns of the rows"):
            table.commit(changes)
    else:
        table.commit(changes)
    assert fresh(table).scan().to_arrow()["v"].to_pylist() == ["meanwhile", "x"][: 1 + joins]
