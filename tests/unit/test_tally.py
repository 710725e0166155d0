"""Progress: told while work runs, one call at a time, up to all there is; an error of the caller's function ends the work."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta

import polars as pl
import pyarrow as pa
import pytest
from unit.public import new_catalog

from paimon_py import Schema, Table, UsageError
from paimon_py.env import Env
from paimon_py.progress import ProgressCounter, ProgressShare, count_batches

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


def goes_up_to(told, total, what, end=None):
    """Whether calls tell of growing numbers up to all of one total."""
    counts = [done for done, _, _ in told]
    end = total if end is None else end
    return {call[1:] for call in told} == {(total, what)} and counts == sorted(set(counts)) and counts[-1] == end


def test_what_is_counted_is_told_at_once(told):
    tally = ProgressCounter(told, 10, "rows")
    for count in (3, 0, 4, 9):
        tally.add(count)
    assert told == [(3, 10, "rows"), (7, 10, "rows"), (10, 10, "rows")]
    ProgressCounter(None, 10, "rows").add(3)
    endless = ProgressCounter(told, 0, "rows")
    endless.add(5)
    assert told[-1] == (5, 0, "rows")


def test_a_thing_is_done_after_all_its_steps(told):
    tally = ProgressCounter(told, 3, "rows", steps=2, attempt=2)
    for count in (1, 1, 3):
        tally.add(count)
    tally.end()
    tally.end()
    assert told == [(1, 3, "rows, attempt 2"), (2, 3, "rows, attempt 2"), (3, 3, "rows, attempt 2")]
    after = tally.then(2, "rows compacted")
    after.end()
    assert told[-1] == (2, 2, "rows compacted")


def test_a_part_counts_no_more_than_all_of_it(told):
    tally = ProgressCounter(told, 10, "rows")
    part = ProgressShare(tally, 6)
    part.add(4)
    part.add(4)
    part.end()
    ProgressShare(tally, 4).end()
    assert [done for done, _, _ in told] == [4, 6, 10]


def test_a_part_reaches_what_it_has_not_counted(told):
    tally = ProgressCounter(told, 10, "rows", steps=2)
    part = ProgressShare(tally, 10, steps=2)
    for place in (4, 3, 4, 30):
        part.reach(place)
    assert [done for done, _, _ in told] == [4, 10]


def test_batches_count_when_they_were_used(told):
    batches = count_batches(ROWS.to_batches(max_chunksize=40), ProgressCounter(told, 100, "rows"))
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

    tally = ProgressCounter(progress, 8_000, "rows")
    threads = [threading.Thread(target=lambda: [tally.add(1) for _ in range(1_000)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not any(overlaps) and last == sorted(last) and last[-1] == 8_000


def test_a_count_that_comes_while_another_is_told_is_told_too(told):
    tally = ProgressCounter(lambda *call: (told(*call), tally.add(2) if len(told) == 1 else None), 5, "rows")
    tally.add(3)
    assert told == [(3, 5, "rows"), (5, 5, "rows")]


def test_nothing_is_told_after_an_error_of_the_callers_function(told):
    def failing(*call):
        told(*call)
        raise KeyError("stop")

    tally = ProgressCounter(failing, 5, "rows")
    with pytest.raises(KeyError):
        tally.add(1)
    tally.add(1)
    tally.end()
    assert told == [(1, 5, "rows")]


def test_loads_tell_of_rows(keyed, told):
    keyed.write_arrow(ROWS, progress=told)
    assert goes_up_to(told, 100, "rows")
    told.clear()
    keyed.write_arrow((batch for batch in ROWS.to_batches(max_chunksize=10)), progress=told)
    taken = [(done, 0, "rows") for done in range(5, 51, 5)]  # a row counts half when taken, half when in a file
    assert told[:10] == taken and told[-1] == (100, 0, "rows") and goes_up_to(told, 0, "rows", 100)
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


def test_expiry_of_tags_tells_of_tags(keyed, told):
    for name in ("a", "b", "c"):
        keyed.create_tag(name)
    assert keyed.expire_tags(older_than=datetime(2100, 1, 1), progress=told) == ["a", "b", "c"]
    assert told == [(1, 3, "tags"), (2, 3, "tags"), (3, 3, "tags")]


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
        lambda table: table.expire_tags(progress=5),
    ],
    ids=["write_arrow", "delete", "update", "merge", "upsert", "rescale", "lookup", "expire_snapshots", "expire_tags"],
)
def test_what_cannot_be_called_is_refused(keyed, call):
    before = keyed.snapshot().id
    with pytest.raises(UsageError, match="progress is a function"):
        call(keyed)
    assert keyed.snapshot().id == before and keyed.options["bucket"] == "2"


@pytest.mark.parametrize(
    ("progress", "why"),
    [
        (lambda count: None, "too many positional arguments"),
        (lambda done, total, what, more: None, "missing a required argument: 'more'"),
        (Told().clear, "too many positional arguments"),
    ],
    ids=["of one", "of four", "a method of none"],
)  # fmt: skip
def test_what_does_not_take_three_arguments_is_refused_before_anything_happens(plain, progress, why):
    taken = []

    def rows():
        taken.append(None)
        yield ROWS

    for call in (
        lambda: plain.write_arrow(rows(), progress=progress),
        lambda: plain.merge(rows(), on=["k"], when_matched_update=True, progress=progress),
        lambda: plain.upsert(rows(), on=["k"], progress=progress),
    ):
        with pytest.raises(UsageError, match=r"progress is called as progress\(done, total, what\)") as error:
            call()
        assert why in str(error.value) and "write lambda done, total, what" in str(error.value)
    assert taken == []


def test_functions_that_have_to_be_awaited_are_refused(plain):
    async def progress(done, total, what):
        raise AssertionError

    with pytest.raises(UsageError, match="would not be awaited: pass a function that is not async"):
        plain.compact(progress=progress)


def test_the_catalog_refuses_what_cannot_be_called(tmp_path):
    with pytest.raises(UsageError, match="progress is a function"):
        new_catalog(str(tmp_path)).remove_orphans(progress=5)


def test_frames_and_lists_of_mappings_say_how_many_rows_they_have(plain, told):
    frame = ROWS.to_pandas().astype({"p": "int32"})
    for data in (frame, pl.from_arrow(ROWS), ROWS.to_pylist(), [ROWS.slice(0, 30), ROWS.slice(30)]):
        told.clear()
        plain.write_arrow(data, progress=told)
        assert goes_up_to(told, 100, "rows")


def test_rows_count_on_the_way_into_files_too(tmp_path, told):
    rows = pa.table({"p": pa.array([1] * 600_000, pa.int32()), "k": range(600_000), "v": ["x"] * 600_000})
    table = new_catalog(str(tmp_path)).create_table("d.t", Schema(COLUMNS), primary_key=["p", "k"], options={"bucket": "1"})
    table.write_arrow(rows, progress=told)
    halfway = [done for done, _, _ in told].index(300_000)
    assert halfway > 0 and len(told) - halfway > 4, "all rows are taken, and the file is begun"
    assert goes_up_to(told, 600_000, "rows")


def test_changes_within_one_file_are_told_step_by_step(tmp_path, told):
    table = new_catalog(str(tmp_path)).create_table("d.t", Schema(COLUMNS))
    count = 600_000
    table.write_arrow(pa.table({"p": pa.array([1] * count, pa.int32()), "k": range(count), "v": ["x"] * count}))
    table.update("v = 'x'", {"v": "y"}, progress=told)
    counts = [0, *(done for done, _, _ in told)]
    assert goes_up_to(told, count, "rows")
    assert len(told) > 10 and max(after - before for before, after in zip(counts, counts[1:])) < count // 2


def test_rows_that_a_writer_drops_count(tmp_path, told):
    options = {"bucket": "1", "ignore-delete": "true"}
    table = new_catalog(str(tmp_path)).create_table("d.t", Schema(COLUMNS), primary_key=["p", "k"], options=options)
    kinds = ROWS.append_column("_row_kind", pa.array(["+I", "-D"] * 50))
    table.write_arrow(iter(kinds.to_batches(max_chunksize=30)), progress=told)
    assert goes_up_to(told, 0, "rows", 100)
    told.clear()
    table.write_arrow(kinds, progress=told)
    assert goes_up_to(told, 100, "rows")


def test_compactions_of_a_load_are_told_after_its_rows(tmp_path, told):
    options = {"bucket": "1", "num-sorted-run.compaction-trigger": "3"}
    table = new_catalog(str(tmp_path)).create_table("d.t", Schema(COLUMNS), primary_key=["p", "k"], options=options)
    for _ in range(2):
        table.write_arrow(ROWS)
    table.write_arrow(ROWS, progress=told)
    rows = [call for call in told if call[2] == "rows"]
    assert goes_up_to(rows, 100, "rows") and goes_up_to(told[len(rows) :], 300, "rows compacted")


def test_waiting_rows_are_told_when_they_get_their_buckets(tmp_path, told):
    options = {"bucket": "-2", "postpone.default-bucket-num": "2"}
    table = new_catalog(str(tmp_path)).create_table("d.t", Schema(COLUMNS), primary_key=["p", "k"], options=options)
    table.write_arrow(ROWS, progress=told)
    assert goes_up_to(told, 100, "rows")
    told.clear()
    table.compact(progress=told)
    assert goes_up_to(told, 100, "waiting rows") and len(told) > 2


def test_work_that_others_overtook_is_told_under_another_name(plain, told):
    def overtaken(*call):
        if not told:
            Table.open(plain.location).delete("k = 3")
        told(*call)

    assert plain.update("k < 50", {"v": "y"}, progress=overtaken).rounds == 2
    first = [call for call in told if call[2] == "rows"]
    assert goes_up_to(first, 50, "rows") and goes_up_to(told[len(first) :], 49, "rows, attempt 2")


class Stop(Exception):
    pass


def started(catalog, name, options, keys):
    options = {"write-only": "true", **options}
    parts = keys and ["p"]
    table = catalog.create_table(name, Schema(COLUMNS), primary_key=keys, partition_by=parts, options=options)
    for _ in range(3):
        table.write_arrow(ROWS)
    return table


KEYS = ["p", "k"]
VERBS = {
    "write": (KEYS, {"bucket": "2"}, lambda table, told: table.write_arrow(ROWS, progress=told)),
    "write without a key": ([], {}, lambda table, told: table.write_arrow(ROWS, progress=told)),
    "write batches": (KEYS, {"bucket": "2"}, lambda table, told: table.write_arrow(iter(ROWS.to_batches(30)), progress=told)),
    "overwrite": (KEYS, {"bucket": "2"}, lambda table, told: table.write_arrow(ROWS, overwrite={}, progress=told)),
    "write and compact": (
        KEYS, {"bucket": "1", "write-only": "false", "num-sorted-run.compaction-trigger": "4"},
        lambda table, told: table.write_arrow(ROWS, progress=told),
    ),
    "publish": (
        KEYS, {"bucket": "-2", "postpone.default-bucket-num": "2"}, lambda table, told: table.compact(progress=told),
    ),
    "compact": (KEYS, {"bucket": "2"}, lambda table, told: table.compact(full=True, progress=told)),
    "compact by threads": (
        KEYS, {"bucket": "2"},
        lambda table, told: Table.open(table.location, env=Env(threads=4)).compact(full=True, progress=told),
    ),
    "sort": ([], {}, lambda table, told: table.compact(full=True, order_by=["k"], progress=told)),
    "update": (KEYS, {"bucket": "2"}, lambda table, told: table.update("k < 60", {"v": "y"}, progress=told)),
    "update files": ([], {}, lambda table, told: table.update("k < 60", {"v": "y"}, progress=told)),
    "update by vectors": (
        [], {"deletion-vectors.enabled": "true"}, lambda table, told: table.update("k < 60", {"v": "y"}, progress=told),
    ),
    "delete": ([], {}, lambda table, told: table.delete("k < 60", progress=told)),
    "merge": (
        KEYS, {"bucket": "2"},
        lambda table, told: table.merge(
            ROWS.slice(8, 4), on=KEYS, when_matched_update={"v": "z"}, when_not_matched_insert=True, progress=told
        ),
    ),
    "analyze": (KEYS, {"bucket": "2"}, lambda table, told: table.analyze(all_columns=True, progress=told)),
    "doctor": (KEYS, {"bucket": "2"}, lambda table, told: table.doctor(deep=True, progress=told)),
    "orphans": (KEYS, {"bucket": "2"}, lambda table, told: table.remove_orphans(progress=told)),
}  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_whatever_call_fails_nothing_is_left_behind(tmp_path, verb):
    keys, options, call = VERBS[verb]
    table = started(new_catalog(str(tmp_path)), "d.t", options, keys)
    files, snapshot = sorted(tmp_path.rglob("*.*")), table.snapshot()
    for last in range(1, 100):
        calls = []

        def stop(*given, calls=calls, last=last):
            calls.append(given)
            if len(calls) == last:
                raise Stop

        try:
            call(table, stop)
        except Stop:
            assert len(calls) == last and sorted(tmp_path.rglob("*.*")) == files, f"call {last}: {calls[-1]}"
            assert table.snapshot() == snapshot
            continue
        assert last > 2 and len(calls) == last - 1
        return
    raise AssertionError("the work never ends")
