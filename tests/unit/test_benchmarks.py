"""The benchmarks themselves: small runs, for their plumbing and for the rows that come out."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from benchmarks import __main__ as benchmarks
from benchmarks import (
    cleaning,
    clustering,
    containers,
    cores,
    frames,
    indexes,
    large_commit,
    memory,
    planning,
    shapes,
    streams,
    system_tables,
    turns,
    versions,
)


@pytest.mark.slow
def test_a_tiny_run_reports_every_peer_and_finds_the_same_rows(tmp_path, capsys):
    output = tmp_path / "out.json"
    results = benchmarks.main(
        ["--scale", "0.001", "--repeats", "1", "--peers", "ours,raw", "--commits", "2"]
        + ["--only", "load 1 M,two columns", "--output", str(output)]
    )
    assert [result["errors"] for result in results] == [{}] * len(results)
    load = results[0]
    assert load["check"]["rows"] == 1000
    assert set(load["cpu"]) == {"ours", "raw"}
    assert json.loads(output.read_text())["results"] == json.loads(json.dumps(results))
    assert "primary-key load 1 M" in capsys.readouterr().out


@pytest.mark.slow
def test_a_commit_is_measured_on_a_copy_of_the_table(tmp_path):
    arguments = ["--scale", "0.001", "--repeats", "1", "--peers", "ours", "--commits", "2", "--work", str(tmp_path)]
    for _ in range(2):
        (result,) = benchmarks.main([*arguments, "--only", "one more commit"])
        assert (result["errors"], result["check"]["rows"]) == ({}, 300)


def test_a_work_directory_is_for_one_run_at_a_time(tmp_path):
    with benchmarks.taken(tmp_path), pytest.raises(SystemExit, match="another run works in"):
        benchmarks.main(["--scale", "0.001", "--repeats", "1", "--peers", "ours", "--work", str(tmp_path)])


def test_a_peer_that_fails_or_differs_is_shown():
    with pytest.raises(benchmarks.Failed, match="nowhere"):
        benchmarks.run("ours", "read", {"table": "/nowhere"})
    result = {"name": "n", "cpu": {"ours": 1.0, "raw": 2.0}, "errors": {"raw": "WRONG rows: 1, not 2"}, "targets": []}
    assert "2.0000 (0.50x) WRONG" in benchmarks.row(result, ["ours", "raw"])


@pytest.mark.slow
def test_memory_is_measured_over_the_import(tmp_path):
    results = memory.main(["--rows", "2000", "--peers", "ours", "--work", str(tmp_path)])
    read, differing, whole, step, loaded, moved, compacted, merged, changed = [result["check"] for result in results]
    assert 0 < differing < read and (whole, step) == (read, 2000)
    assert (read, loaded, moved) == (2000 * 8 // 10 + 10 * 20, 2000, 2000 + 2 * 200)
    assert compacted == 20 * memory.RUNS + 20
    assert merged == 20 and 0 < changed < 40
    assert all(0 <= result["over_import_mb"] < 500 for result in results)


@pytest.mark.slow
def test_every_step_of_the_container_trial_works(tmp_path, capsys):
    for name in containers.STEPS:
        containers.run_step(str(tmp_path / "w"), name, 2_000)
        assert capsys.readouterr().out.startswith("done\t"), name


MERGES = "full compaction,with spill"
ENGINES = "partial-update / deduplicate,aggregation / deduplicate"


@pytest.mark.slow
@pytest.mark.parametrize("only", [MERGES, pytest.param(f"{MERGES},{ENGINES}", marks=pytest.mark.full)], ids=["some", "every"])
def test_what_the_merge_tree_adds_is_compared_with_doing_without(tmp_path, only):
    results = benchmarks.main(
        ["--scale", "0.001", "--repeats", "1", "--peers", "ours,raw,plain", "--work", str(tmp_path), "--only", only]
    )
    assert [result["errors"] for result in results] == [{}] * len(results)
    compaction, spill = results[:2]
    assert compaction["check"]["rows"] == 1500 and set(compaction["cpu"]) == {"ours", "raw"}
    assert spill["check"]["rows"] == 5000 and set(spill["cpu"]) == {"ours", "plain"}
    assert [set(result["cpu"]) for result in results[2:]] == [{"ours", "plain"}] * (2 if only == MERGES else 6)


EVERY_CHANGE = "delete 1 % of,update 1 % of"
SOME_CHANGES = "delete 1 % of 10 M append rows together (del,update 1 % of 10 M append rows everywhere (rew"


@pytest.mark.slow
@pytest.mark.parametrize("only", [SOME_CHANGES, pytest.param(EVERY_CHANGE, marks=pytest.mark.full)], ids=["some", "every"])
def test_changes_of_rows_end_as_plain_reading_and_writing_does(tmp_path, only):
    results = benchmarks.main(
        ["--scale", "0.0002", "--repeats", "1", "--peers", "ours,raw", "--work", str(tmp_path), "--only", only]
    )
    assert len(results) == (8 if only == EVERY_CHANGE else 2)
    for result in results:
        assert (result["errors"], set(result["cpu"])) == ({}, {"ours", "raw"})
        rows = result["check"]["rows"]
        assert rows == 2000 if result["name"].startswith("update") else 1950 < rows <= 1980


@pytest.mark.full
def test_merges_and_loads_of_dynamic_buckets_are_measured(tmp_path):
    results = benchmarks.main(
        ["--scale", "0.0002", "--repeats", "1", "--peers", "ours,plain", "--work", str(tmp_path)]
        + ["--only", "10 M rows together (del,merge 100 k into 10 M rows everywhere (prim,load 1 M into dynamic"]
    )
    assert [result["errors"] for result in results] == [{}] * 3
    assert [result["check"]["rows"] for result in results] == [2010, 2010, 200]
    assert [len(result["cpu"]) for result in results] == [1, 1, 2]


def test_a_run_that_is_stopped_keeps_its_rows(tmp_path, monkeypatch):
    output = tmp_path / "out.json"
    seen = []

    def compare(measure, *rest):
        seen.append(measure.name)
        if len(seen) == 2:
            raise KeyboardInterrupt
        return {"name": measure.name, "cpu": {}, "errors": {}, "targets": []}

    monkeypatch.setattr(benchmarks, "compare", compare)
    with pytest.raises(KeyboardInterrupt):
        benchmarks.main(["--scale", "0.001", "--peers", "ours", "--output", str(output)])
    assert [result["name"] for result in json.loads(output.read_text())["results"]] == seen[:1]


@pytest.mark.slow
def test_queries_of_an_indexed_table_look_at_hardly_more_than_what_matches():
    for line in indexes.main(["--rows", "3000"]):
        assert line.looked_at <= max(1.2 * line.matching, line.matching + 1), line
        assert line.looked_at < line.without or not line.without


@pytest.mark.slow
def test_a_stream_costs_four_calls_a_commit_and_the_same_at_the_end_as_at_the_start(capsys):
    follows, catches_up = streams.main(["--commits", "60"])
    assert all(line.all.calls <= 4 for line in (follows, catches_up))
    assert follows.first.calls <= follows.last.calls == 4
    assert catches_up.last.calls <= catches_up.first.calls
    assert "catches up" in capsys.readouterr().out


@pytest.mark.slow
def test_queries_of_a_sorted_indexed_table_look_at_what_a_perfect_index_would(capsys):
    found = {(line.layout, line.query): line for line in clustering.main(["--rows", "6400"])}
    assert all(line.ratio <= 1.2 for line in found.values())
    days, both = "a tenth of the days", "a quarter of both"
    assert found["order", days].by_statistics <= 1.4 * found["order", days].matching
    for curve in ("zorder", "hilbert"):
        assert found[curve, both].by_statistics < found["order", both].by_statistics
    assert "zorder" in capsys.readouterr().out


@pytest.mark.slow
def test_two_versions_take_turns_at_every_step():
    lines = versions.compare([versions.ROOT] * 2, ["open_table", "change"], 1, 1_000)
    assert [line.split(" | ")[0] for line in lines] == ["| open_table", "| change"]
    assert all(float(line.split(" | ")[2]) > 0 for line in lines)


@pytest.mark.slow
def test_system_tables_tell_of_all_that_was_made(tmp_path, capsys):
    system_tables.make(str(tmp_path), 5, 25_000)
    rows = {}
    for number in range(len(system_tables.SCANS)):
        line = system_tables.measure(str(tmp_path), number)
        rows[line.scan] = (line.rows, line.calls)
    assert rows["$snapshots, snapshot_id = 77"][0] == 0 and rows["$snapshots"][0] == 5
    assert rows["$files"][0] == 25_000 and rows["$manifests"][0] == rows["$buckets"][0] == rows["$partitions"][0] == 3
    assert rows["$files, partition = '{3}'"][0] == 0 and rows["$files, partition = '{3}'"][1] < rows["$files"][1]


@pytest.mark.slow
def test_cleaning_finds_what_was_made_for_it(tmp_path):
    lines = []
    for kind, count in zip(cleaning.KINDS, (12, 900, 11_000), strict=True):
        directory = str(tmp_path / kind)
        cleaning.make(directory, kind, count)
        lines.append(cleaning.measure(directory, kind, count))
    assert [line.files for line in lines[1:]] == [900 // 9, 10_000 // 9 + 1000 // 9]
    assert lines[0].files > 20 and lines[0].calls < 12 * 15


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes cannot be pinned here")
def test_cores_are_compared_on_the_same_rows(tmp_path, capsys):
    lines = cores.main(["--rows", "4000", "--repeats", "1", "--only", "in order, keyed wide"])
    assert [line.step for line in lines] == ["in order, keyed wide"]
    assert lines[0].one.rows == lines[0].several.rows == 2000 and lines[0].ratio > 0
    assert "in order, keyed wide" in capsys.readouterr().out


@pytest.mark.slow
def test_one_commit_of_many_tasks_names_all_their_files(tmp_path):
    large_commit.make(str(tmp_path), 6)
    lines = [large_commit.measure(str(tmp_path), 3, 2, 4, step, distant=True) for step in large_commit.STEPS]
    assert [line.files for line in lines] == [24, 24, 54]
    assert all(line.handed_over > 500 and line.calls > 10 and line.manifests for line in lines)


@pytest.mark.slow
def test_queries_of_frames_find_what_scans_find(capsys):
    lines = frames.main(["--rows", "800", "--repeats", "1"])
    assert {line.library for line in lines} == {"polars", "DuckDB"}
    assert [line.rows for line in lines if line.query == "a range of keys"] == [10, 10]
    assert "ten rows" in capsys.readouterr().out


@pytest.mark.slow
def test_plans_are_measured_in_processes_of_their_own():
    lines = planning.main(["--files", "200"])
    assert [line.splits for line in lines] == [7, 0, 0, 0, 7, 7, 1, 0, 0, 0, 1, 1]


def test_shapes_are_told_by_ratios_and_what_is_slower():
    figures = [
        shapes.Figure("int-key", 100, "load", 0.5, 1.0, 0.5), shapes.Figure("int-key", 1100, "load", 1.5, 1.0, 1.5),
        shapes.Figure("orc", 1100, "load", 2.0, None, None),
    ]  # fmt: skip
    assert shapes.table_of(figures).splitlines()[2:] == ["| int-key | 1.50 |", "| orc | 2000 ms |"]
    assert [one.ratio for one in shapes.lost(figures)] == [1.5]
    ((place, (fixed, slope)),) = shapes.costs(figures).items()
    assert place == ("int-key", "load") and round(fixed) == 400 and round(slope) == 1_000_000


@pytest.mark.full
def test_two_checkouts_take_turns_at_reads():
    given = ["--only", "int-key", "--rows", "2000", "--reads", "1", "--beside", str(Path(benchmarks.__file__).parents[1])]
    found = turns.main(given)
    assert {line for _, line in found} == {line.name for line in shapes.READS}
    assert all(0.01 < each["before"] < 100 for each in found.values())


@pytest.mark.parametrize("shape", shapes.SHAPES)
def test_every_shape_makes_rows_that_differ_by_seed(shape):
    rows = [shapes.made(shapes.SHAPES[shape], 50, np.arange(50), seed) for seed in (1, 1, 2)]
    assert rows[0].equals(rows[1]) and not rows[0].equals(rows[2])
    assert set(shapes.SHAPES[shape].key) <= set(rows[0].column_names)
