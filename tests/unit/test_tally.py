"""Progress: told while work runs, one call at a time, up to all there is; an error of the caller's function ends the work."""

from __future__ import annotations

import threading
from datetime import timedelta

import pyarrow as pa
import pytest
from unit.public import new_catalog

from paimon_py import Schema, Table, UsageError
from paimon_py.env import Env
from paimon_py.tally import Tally, TallyPart, counted

COLUMNS = [("p", "INT NOT NULL"), ("k", "BIGINT NOT NULL"), ("v", "STRING")]
ROWS = pa.table({"p": pa.array([1, 2] * 50, pa.int32()), "k": range(100), "v": ["x"] * 100})


class Told(list):
    def __call__(self, *call):
        self.append(call)


@pytest.fixture
def told():
    return Told()


@pytest.fixture
def keyed(tmp_path):
    catalog = new_catalog(str(tmp_path))
    table = catalog.create_table(
        "d.t", Schema(COLUMNS), primary_key=["p", "k"], partition_by=["p"], options={"bucket": "2", "write-only": "true"}
    )
    for _ in range(3):
        table.write_arrow(ROWS)
    return table


@pytest.fixture
def plain(tmp_path):
    table = new_catalog(str(tmp_path)).create_table("d.a", Schema(COLUMNS), options={"write-only": "true"})
    for start in range(0, 100, 25):
        table.write_arrow(ROWS.slice(start, 25))
    return table


def goes_up_to(told, total, what):
    """Whether calls tell of growing numbers up to all of one total."""
    counts = [done for done, _, _ in told]
    return {call[1:] for call in told} == {(total, what)} and counts == sorted(set(counts)) and counts[-1] == total


def test_what_is_counted_is_told_at_once(told):
    tally = Tally(told, 10, "rows")
    for count in (3, 0, 4, 9):
        tally.add(count)
    assert told == [(3, 10, "rows"), (7, 10, "rows"), (10, 10, "rows")]
    Tally(None, 10, "rows").add(3)
    endless = Tally(told, 0, "rows")
    endless.add(5)
    assert told[-1] == (5, 0, "rows")


def test_a_part_counts_no_more_than_all_of_it(told):
    tally = Tally(told, 10, "rows")
    part = TallyPart(tally, 6)
    part.add(4)
    part.add(4)
    part.end()
    TallyPart(tally, 4).end()
    assert [done for done, _, _ in told] == [4, 6, 10]


def test_batches_count_when_they_were_used(told):
    batches = counted(ROWS.to_batches(max_chunksize=40), Tally(told, 100, "rows"))
    next(batches)
    assert told == []
    next(batches)
    assert told == [(40, 100, "rows")]
    assert sum(batch.num_rows for batch in batches) == 20 and told[-1] == (100, 100, "rows")


def test_threads_tell_one_after_the_other_and_lose_nothing():
    inside, overlaps, last = [], [], []

    def progress(done, total, what):
        inside.append(None)
        overlaps.append(len(inside) > 1)
        last.append(done)
        inside.pop()

    tally = Tally(progress, 8_000, "rows")
    threads = [threading.Thread(target=lambda: [tally.add(1) for _ in range(1_000)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not any(overlaps) and last == sorted(last) and last[-1] == 8_000


def test_a_count_that_comes_while_another_is_told_is_told_too(told):
    tally = Tally(lambda *call: (told(*call), tally.add(2) if len(told) == 1 else None), 5, "rows")
    tally.add(3)
    assert told == [(3, 5, "rows"), (5, 5, "rows")]


def test_an_error_leaves_the_turn_to_others():
    def failing(*_):
        raise KeyError("stop")

    tally = Tally(failing, 5, "rows")
    for _ in range(2):
        with pytest.raises(KeyError):
            tally.add(1)


def test_loads_tell_of_rows(keyed, told):
    keyed.write_arrow(ROWS, progress=told)
    assert goes_up_to(told, 100, "rows")
    told.clear()
    keyed.write_arrow((batch for batch in ROWS.to_batches(max_chunksize=10)), progress=told)
    assert told == [(done, 0, "rows") for done in range(10, 101, 10)]
    told.clear()
    keyed.upsert(ROWS, progress=told)
    assert goes_up_to(told, 100, "rows")


def test_compactions_tell_of_rows_within_a_bucket(keyed, told):
    keyed.compact(full=True, progress=told)
    assert goes_up_to(told, 300, "rows")
    assert len(told) > len(keyed.scan().splits())


def test_compactions_by_threads_tell_of_all_rows(keyed, told):
    Table.open(keyed.location, env=Env(threads=4)).compact(full=True, progress=told)
    assert goes_up_to(told, 300, "rows")


@pytest.mark.parametrize("kind", ["keyed", "plain"])
def test_changes_of_rows_tell_of_rows_looked_at(kind, told, request):
    table = request.getfixturevalue(kind)
    rows = 300 if kind == "keyed" else 100
    table.update("v = 'x'", {"v": "y"}, progress=told)
    assert goes_up_to(told, rows, "rows") and len(told) > 1
    for change in (
        lambda: table.delete("k < 4", progress=told),
        lambda: table.merge(ROWS.slice(8, 4), on=["p", "k"], when_matched_update={"v": "z"}, progress=told),
        lambda: table.upsert(ROWS.slice(8, 4), on=["p", "k"], progress=told),
    ):
        told.clear()
        change()
        assert told and told[-1][0] == told[-1][1] > 0


def test_rescaling_tells_of_rows(keyed, told):
    keyed.compact(full=True)
    keyed.rescale(3, progress=told)
    assert goes_up_to(told, 100, "rows") and len(told) > 1


def test_lookups_tell_of_keys(keyed, told):
    keys = [{"p": p, "k": k} for p, k in zip(ROWS["p"].to_pylist(), ROWS["k"].to_pylist())]
    assert keyed.lookup([*keys, {"p": 7, "k": 1}], progress=told).num_rows == 100
    assert goes_up_to(told, 101, "keys") and len(told) > 2


def test_expiry_tells_of_snapshots_then_of_files(keyed, told):
    keyed.compact(full=True)
    keyed.expire_snapshots(retain_min=1, retain_max=1, progress=told)
    snapshots = [call for call in told if call[2] == "snapshots"]
    files = [call for call in told if call[2] == "files"]
    assert told == snapshots + files
    assert snapshots == [(1, 3, "snapshots"), (2, 3, "snapshots"), (3, 3, "snapshots")] and files[-1][0] == files[-1][1] > 0


def test_expiry_of_changelogs_tells_of_changelogs_then_of_files(tmp_path, told):
    options = {"bucket": "1", "changelog-producer": "input", "snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1",
               "changelog.num-retained.min": "9", "changelog.num-retained.max": "9", "write-only": "true"}  # fmt: skip
    table = new_catalog(str(tmp_path)).create_table("d.c", Schema(COLUMNS), primary_key=["p", "k"], options=options)
    for _ in range(5):
        table.write_arrow(ROWS.slice(0, 3))
    table.expire_snapshots()
    table.expire_changelogs(retain_min=1, retain_max=2, older_than=timedelta(milliseconds=-1), dry_run=True, progress=told)
    assert told == [(1, 3, "changelogs"), (2, 3, "changelogs"), (3, 3, "changelogs")]
    told.clear()
    table.expire_changelogs(retain_min=1, retain_max=2, older_than=timedelta(milliseconds=-1), progress=told)
    assert told[:3] == [(1, 3, "changelogs"), (2, 3, "changelogs"), (3, 3, "changelogs")]
    assert goes_up_to(told[3:], told[-1][1], "files") and told[-1][1] > 2


def test_an_error_of_the_callers_function_ends_a_load_without_a_file(plain):
    def stop(*_):
        raise LookupError("enough")

    before = plain.system("files").scan().to_arrow().num_rows
    with pytest.raises(LookupError, match="enough"):
        plain.write_arrow(ROWS, progress=stop)
    assert plain.system("files").scan().to_arrow().num_rows == before and plain.snapshot().id == 4


@pytest.mark.parametrize(
    "call",
    [
        lambda table: table.write_arrow(ROWS, progress=5),
        lambda table: table.delete("k = 1", progress=5),
        lambda table: table.update("k = 1", {"v": "a"}, progress=5),
        lambda table: table.merge(ROWS, on=["p", "k"], when_matched_update=True, progress=5),
        lambda table: table.upsert(ROWS, progress=5),
        lambda table: table.rescale(3, progress=5),
        lambda table: table.lookup([{"p": 1, "k": 1}], progress=5),
        lambda table: table.expire_snapshots(progress=5),
    ],
    ids=["write_arrow", "delete", "update", "merge", "upsert", "rescale", "lookup", "expire_snapshots"],
)
def test_what_cannot_be_called_is_refused(keyed, call):
    before = keyed.snapshot().id
    with pytest.raises(UsageError, match="progress is a function"):
        call(keyed)
    assert keyed.snapshot().id == before and keyed.options["bucket"] == "2"
