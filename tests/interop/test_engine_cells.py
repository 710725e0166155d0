"""Every engine, function, way of deleting, format and level: the same by Java, by us, and by both in turn.

`shrink.py` makes a failing script small.
"""

from __future__ import annotations

import dataclasses

import engine_cells
import engine_edges
import pytest
from engine_play import TURNS, check, play
from engine_scripts import Script

pytestmark = pytest.mark.java

QUICK = {script.about: script for script in engine_cells.quick()}
EDGES = {script.about: script for script in engine_edges.edges()}
ALL = {script.about: script for script in engine_cells.every()}
REST = [name for name in ALL if name not in QUICK]


def test_names_are_names_of_one_script():
    assert len(EDGES) == len(engine_edges.edges())
    assert len(ALL) == len(engine_cells.every())
    assert len(QUICK) + len(EDGES) >= 150


@pytest.mark.budget(10)
@pytest.mark.parametrize("name", QUICK)
def test_a_cell_of_the_matrix_ends_alike_whoever_plays_it(name, java, tmp_path):
    ours = "oj" if list(QUICK).index(name) % 2 else "o"
    check(QUICK[name], play(java("2.0.0"), tmp_path, QUICK[name], ("j", ours)))


@pytest.mark.parametrize("name", EDGES)
def test_a_rule_is_followed_alike(name, java, tmp_path):
    check(EDGES[name], play(java("2.0.0"), tmp_path, EDGES[name], ("j", "o")))


@pytest.mark.parametrize("script", engine_edges.unmergeable(), ids=lambda script: script.about)
def test_we_refuse_to_write_what_no_merge_takes(script: Script, java, tmp_path):
    """Java commits such rows, after which it cannot compact the table or read it."""
    script = dataclasses.replace(script, java_only=False)
    played = play(java("2.0.0"), tmp_path, script, ("o",))["o"]
    kinds = [{row.get("_kind", "+I") for row in rows} for verb, rows in script.steps if verb == "write"]
    first = next(number for number, found in enumerate(kinds, start=1) if found & {"-U", "-D"})
    assert played.failed == first
    assert "cannot be written: the merge engine" in str(played.ends[first])
    latest = played.pair.table().snapshot()
    assert (latest.id if latest else 0) == first - 1


@pytest.mark.full
@pytest.mark.parametrize("name", [*REST, *EDGES, *QUICK])
def test_a_script_ends_alike_in_every_order_of_players(name, java, tmp_path):
    script = {**ALL, **EDGES, **QUICK}[name]
    check(script, play(java("2.0.0"), tmp_path, script, TURNS))


# Java 0.9 makes rows whose key is NULL of retractions that meet no row in a sequence group.
OLDER = [
    engine_cells.aggregation("sum", "retract", "parquet"),
    engine_cells.grouped("max", "adds", "orc"),
    engine_cells.partial("ignore", "avro"),
    engine_cells.sequenced("deduplicate", "two", "deletes", "parquet"),
    engine_cells.first_row("adds", "orc", False),
    engine_cells.vectors("deduplicate", 32, "avro", False),
    engine_cells.vectors("aggregation", 32, "parquet", True),
    engine_cells.levels("by count", 3, None, False),
]


@pytest.mark.parametrize("version", ["1.4.2", pytest.param("0.9.0", marks=pytest.mark.full)])
@pytest.mark.parametrize("script", OLDER, ids=lambda script: script.about)
def test_older_javas_read_and_compact_our_tables_and_we_theirs(script: Script, version, java, tmp_path):
    """Only rows are compared: older Javas pick other files and keep other statistics."""
    rows_only = dataclasses.replace(script, sizes_matter=True)
    check(rows_only, play(java(version), tmp_path, rows_only, ("j", "oj", "jo")))
