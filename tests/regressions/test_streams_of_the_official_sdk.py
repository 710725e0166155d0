"""What pypaimon 2.1.0 answers wrongly about streams, each as a small test: see the notes on features of this project."""

from __future__ import annotations

import pyarrow as pa
from unit.stream.build import again, rows, table_of, write


def test_deletes_stay_deletes_however_far_a_reader_is_behind():
    """More than ten snapshots behind, the official SDK reads data files for changelogs: deletes come as additions."""
    for producer in ("none", "input"):
        table = table_of(**{"changelog-producer": producer})
        for number in range(15):
            write(table, (number, "a"))
            write(table, (number, "a", "-D"))
        found = [rows(step) for step in table.stream(from_=1, until="now")]
        assert found == [[(number, "a", kind)] for number in range(15) for kind in ("+I", "-D")], producer


def test_a_reader_that_is_behind_sees_every_change_and_not_their_sum():
    table = table_of(**{"changelog-producer": "input"})
    position = table.stream(from_="latest")
    for number in range(12):
        write(table, (1, f"v{number}", "+U"))
    assert [rows(step) for step in iter(position.poll, None)] == [[(1, f"v{number}", "+U")] for number in range(12)]


def test_an_input_changelog_keeps_the_rows_that_a_merge_folds():
    table = table_of(**{"changelog-producer": "input"})
    write(table, (1, "a"), (1, "b", "+U"), (1, "c", "+U"))
    step, = table.stream(from_=1, until="now")
    assert rows(step) == [(1, "a", "+I"), (1, "b", "+U"), (1, "c", "+U")]


def test_committing_again_doubles_neither_rows_nor_steps():
    table = table_of(keyed=False)
    with table.writer() as writer:
        writer.write_arrow(pa.table({"k": pa.array([1], pa.int32()), "v": ["a"]}))
        changes = bytes(writer.changes())
    for _ in range(3):
        again(table).commit(changes, user="job", identifier=1)
    assert [rows(step) for step in table.stream(from_=1, until="now")] == [[(1, "a", "+I")]]


def test_options_of_a_start_are_not_ignored():
    table = table_of()
    for number in range(3):
        write(table, (number, "a"))
    latest = table.stream(options={"scan.mode": "latest"}, until="now")
    assert list(latest) == []
    third = table.stream(options={"scan.mode": "from-snapshot", "scan.snapshot-id": "3"}, until="now")
    assert [rows(step) for step in third] == [[(2, "a", "+I")]]
