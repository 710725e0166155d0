"""Wrong answers of the official Python SDK on incremental reads, which ours must never give.

It returned the whole table for `incremental-between`, ignored `incremental-between-scan-mode` and
`incremental-to-auto-tag`, and folded rows of one key before it wrote them to the input changelog.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pyarrow as pa
import pytest

from paimon_py import Catalog, OptionError, Schema, UsageError


@pytest.fixture
def table(tmp_path):
    catalog = Catalog.open(str(tmp_path / "wh"))
    catalog.create_database("d")
    columns = Schema([("k", "BIGINT NOT NULL"), ("v", "STRING")])
    options = {"bucket": "1", "changelog-producer": "input", "tag.creation-period": "daily"}
    made = catalog.create_table("d.t", columns, primary_key=["k"], options=options)
    write(made, [(1, "a"), (2, "a"), (3, "a")])
    made.create_tag("2024-01-01")
    write(made, [(1, "b"), (1, "c"), (1, "d")])
    made.create_tag("2024-01-03")
    write(made, [(2, "e")])
    return made


def write(table, rows):
    table.write_arrow(pa.table({"k": [k for k, _ in rows], "v": [v for _, v in rows]}))


def rows(table, **options):
    found = table.scan(options={name.replace("_", "-"): text for name, text in options.items()}).to_arrow()
    return sorted(tuple(row.values()) for row in found.to_pylist())


def test_incremental_between_gives_changes_and_not_the_table(table):
    assert rows(table, incremental_between="2,3") == [(2, "e", "+I")]
    assert rows(table, incremental_between="3,3") == []
    assert len(rows(table, incremental_between="0,3")) == 7


def test_the_input_changelog_has_every_row_that_came_in(table):
    assert rows(table, incremental_between="1,2") == [(1, v, "+I") for v in "bcd"]
    assert rows(table, incremental_between="1,2") == sorted(
        tuple(row.values()) for row in table.changes(1, 2).to_arrow().to_pylist()
    )
    assert [row["v"] for row in table.changes(1, 2).to_arrow().to_pylist()] == ["b", "c", "d"]


def test_the_mode_of_an_incremental_read_counts(table):
    for mode, wanted in (("delta", ["d", "e"]), ("changelog", ["b", "c", "d", "e"]), ("diff", ["d", "e"])):
        found = rows(table, incremental_between="1,3", incremental_between_scan_mode=mode)
        assert [v for _, v, _ in found] == wanted, mode
    with pytest.raises(OptionError, match="one of"):
        rows(table, incremental_between="1,3", incremental_between_scan_mode="all")


def test_two_tags_give_the_diff_or_the_changes_between_their_snapshots(table):
    assert rows(table, incremental_between="2024-01-01,2024-01-03") == [(1, "d", "+I")]
    found = rows(table, incremental_between="2024-01-01,2024-01-03", incremental_between_tag_to_snapshot="true")
    assert [v for _, v, _ in found] == ["b", "c", "d"]
    with pytest.raises(UsageError, match="ends before it begins"):
        rows(table, incremental_between="2024-01-03,2024-01-01")
    with pytest.raises(UsageError, match="neither two tags of the table nor two snapshot ids"):
        rows(table, incremental_between="2024-01-03,nothing")


def test_an_automatic_tag_gives_the_diff_from_the_one_before(table):
    assert rows(table, incremental_to_auto_tag="2024-01-03") == [(1, "d", "+I")]
    assert rows(table, incremental_to_auto_tag="2024-01-01") == []
    assert rows(table, incremental_to_auto_tag="2024-01-05") == []
    with pytest.raises(OptionError, match="not an automatic tag"):
        rows(table, incremental_to_auto_tag="monday")


def test_times_choose_the_snapshots_at_or_before_them(table):
    first, _, last = (snapshot.time_millis for snapshot in table.snapshots())
    assert len(rows(table, incremental_between_timestamp=f"1,{last}")) == 7
    assert rows(table, incremental_between_timestamp=f"{last + 1},{last + 5}") == []
    assert rows(table, incremental_between_timestamp="1,2") == []
    text = (datetime.fromtimestamp(first / 1000, timezone.utc) - timedelta(days=1)).strftime("%Y-%m-%d %H:%M:%S")
    assert len(rows(table, incremental_between_timestamp=f"{text},2200-01-01 00:00:00")) == 7


def test_a_diff_from_before_the_oldest_snapshot_begins_with_what_is_left(table):
    last = table.snapshot().time_millis
    diff = {"incremental_between_timestamp": f"1,{last}", "incremental_between_scan_mode": "diff"}
    assert rows(table, **diff) == [(1, "d", "+I"), (2, "e", "+I"), (3, "a", "+I")]
    table.expire_snapshots(retain_min=2, retain_max=2)
    assert rows(table, **diff) == [(2, "e", "+I")]


def test_a_diff_of_a_table_without_key_gives_the_rows_of_new_files(tmp_path):
    catalog = Catalog.open(str(tmp_path / "wh"))
    catalog.create_database("d")
    made = catalog.create_table("d.t", Schema([("k", "BIGINT"), ("v", "STRING")]), options={"bucket": "-1"})
    for key in range(4):
        write(made, [(key, "a")])
    made.delete("k = 1")

    def between(ends):
        return rows(made, incremental_between=ends, incremental_between_scan_mode="diff")

    assert between("1,4") == [(key, "a", "+I") for key in (1, 2, 3)]
    assert between("1,2") == [(1, "a", "+I")]
    assert between("3,5") == [(3, "a", "+I")] and between("4,5") == between("5,5") == []


def test_modes_of_scans(table):
    def modes(**options):
        return rows(table, **{name.replace("scan_", "scan."): text for name, text in options.items()})

    assert modes(**{"scan.mode": "latest-delta"}) == [(2, "e", "+I")]
    assert modes(**{"scan.mode": "compacted-full"}) == modes()
    table.compact(full=True)
    write(table, [(9, "z")])
    assert (9, "z") not in modes(**{"scan.mode": "compacted-full"})
    assert modes(**{"scan.mode": "latest-delta"}) == [(9, "z", "+I")]
    table.compact(full=True)
    assert modes(**{"scan.mode": "latest-delta"}) == []
    assert modes(**{"scan.file-creation-time-millis": "1"}) == modes()
    assert modes(**{"scan.file-creation-time-millis": str(2**42)}) == []
    last = table.snapshot().time_millis
    assert modes(**{"scan.creation-time-millis": str(last + 1)}) == []
    assert modes(**{"scan.creation-time-millis": "1"}) == modes()


def test_options_of_the_table_itself_choose_unless_the_scan_does(table):
    from paimon_py import SetOption

    table.alter(SetOption("scan.mode", "compacted-full"))
    table.compact(full=True)
    write(table, [(9, "z")])
    assert (9, "z") not in rows(table)
    assert table.scan(snapshot_id=table.snapshot().id).count() == 4
