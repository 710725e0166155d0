"""Tables whose manifests are ORC files, as Java before 2.1 writes them where `manifest.format` says so: both ways, in turns."""

from __future__ import annotations

import dataclasses

import engine_cells
import pytest
import table_scripts
from engine_play import check, play
from engine_scripts import Script
from pair import Pair
from row_pair import RowPair
from table_play import check as check_table

from paimon_py import SetOption

pytestmark = pytest.mark.java

ORC = {"manifest.format": "orc", "manifest.merge-min-count": "3"}
CELLS = [
    engine_cells.aggregation("sum", "retract", "parquet"),
    engine_cells.vectors("deduplicate", 32, "avro", False),
    engine_cells.levels("by count", 3, None, False),
]
TABLES = list(table_scripts.cells())


def in_orc(script: Script, **more: object) -> Script:
    """The same life of a table with manifests in ORC; the sizes of manifests differ by writer."""
    return dataclasses.replace(script, options={**script.options, **ORC}, **more)


@pytest.mark.parametrize("version", ["2.0.0", "1.4.2", pytest.param("0.9.0", marks=pytest.mark.full)])
@pytest.mark.parametrize("script", CELLS, ids=lambda script: script.about)
def test_java_and_we_act_in_turns_on_tables_with_orc_manifests(script, version, java, tmp_path):
    script = in_orc(script, sizes_matter=version != "2.0.0")
    tables = play(java(version), tmp_path, script, ("j", "oj", "jo"))
    check(script, tables)
    assert_all_orc(tables["oj"].pair)


@pytest.mark.parametrize(
    "number", [pytest.param(n, id=script.about, marks=() if n % 40 == 0 else pytest.mark.full) for n, script in enumerate(TABLES)]
)
def test_bucket_modes_and_operations_end_alike(number, java, tmp_path):
    script = in_orc(TABLES[number])
    check_table(script, play(java("2.0.0"), tmp_path, script, ("j", "oj")))


@pytest.mark.parametrize("version", ["2.0.0", "1.4.2", "0.9.0"])
def test_java_reads_tables_whose_history_we_merge_and_expire(version, java, tmp_path):
    script = in_orc(engine_cells.levels("by count", 3, None, False))
    pair = play(java(version), tmp_path, dataclasses.replace(script, sizes_matter=True), ("oj",))["oj"].pair
    table = pair.table()
    table.compact_manifests()
    table.create_branch("b")
    table.expire_snapshots(retain_min=1, retain_max=1)
    assert table.remove_orphans(dry_run=False).files == 0
    assert_all_orc(pair)
    assert pair.java_rows() == pair.our_rows()
    assert table.doctor() == []


def test_a_history_may_hold_both_formats(java, tmp_path):
    """Java keeps to one of them; we read what is there."""
    script = in_orc(engine_cells.levels("by count", 3, None, False))
    pair = RowPair(java("2.0.0"), tmp_path, "o")
    pair.create(script, "j")
    for step in script.steps[:2]:
        pair.act(step, "j")
    before = pair.our_rows()
    pair.table().alter(SetOption("manifest.format", "avro"))
    pair.act(script.steps[0], "o")
    assert len(pair.our_rows()) >= len(before)
    magics = {path.read_bytes()[:3] for path in (pair.path / "manifest").iterdir()}
    assert magics == {b"ORC", b"Obj"}


def assert_all_orc(pair: Pair) -> None:
    magics = {path.read_bytes()[:3] for path in (pair.path / "manifest").iterdir()}
    assert magics == {b"ORC"}
