"""Finding, reading and publishing snapshots, whatever the hints say."""

import msgspec
import pytest

from paimon_py.codec.snapshot_json import snapshot_to_json
from paimon_py.env import Env
from paimon_py.errors import CorruptionError, SnapshotExpiredError, SnapshotNotFoundError, StorageError
from paimon_py.metadata.hints import raise_hint
from paimon_py.metadata.snapshots import ReadPolicy, Snapshots
from paimon_py.spec.snapshot import MIN_LONG, CommitKind, Snapshot
from paimon_py.storage.memory_store import MemoryStore

ROOT = "/w/t"


class Waits:
    """A clock that notes waits; `then` happens at the first one."""

    def __init__(self, then=lambda: None):
        self.waited = []
        self.then = then

    def sleep(self, seconds):
        self.waited.append(seconds)
        self.then()

    def millis(self):
        return 0

    def local_millis(self):
        return 0

    def elapsed(self):
        return 0.0


def snapshot(number: int, **changes) -> Snapshot:
    made = Snapshot(
        id=number,
        schema_id=0,
        base_manifest_list="b",
        delta_manifest_list="d",
        commit_user="u",
        commit_identifier=number,
        commit_kind=CommitKind.APPEND,
        time_millis=number * 1000,
    )
    return msgspec.structs.replace(made, **changes)


def table(*ids: int, latest=None, earliest=None, store=None, **changes) -> Snapshots:
    store = store or MemoryStore()
    for number in ids:
        store.put(f"{ROOT}/snapshot/snapshot-{number}", snapshot_to_json(snapshot(number, **changes)))
    for name, hint in (("LATEST", latest), ("EARLIEST", earliest)):
        if hint is not None:
            store.put(f"{ROOT}/snapshot/{name}", hint if isinstance(hint, bytes) else str(hint).encode())
    return Snapshots(store, ROOT, Env(Waits()))


HINTS = [None, 0, 1, 2, 3, 4, 5, 6, 7, 8, 99, -3, b"", b"garbage", b"7\n", b"\xff", b"9" * 400]


@pytest.mark.parametrize("latest", HINTS, ids=repr)
@pytest.mark.parametrize("earliest", HINTS, ids=repr)
def test_answers_do_not_depend_on_hints(latest, earliest):
    snapshots = table(4, 5, 6, 7, latest=latest, earliest=earliest)
    assert snapshots.latest_id() == 7
    assert snapshots.latest() == snapshot(7)
    assert snapshots.ids() == [4, 5, 6, 7]
    if earliest not in (5, 6, 7, b"7\n"):
        assert snapshots.earliest_id() == 4


@pytest.mark.parametrize("latest", [None, 3, b"x"])
def test_empty_table_has_no_snapshot(latest):
    snapshots = table(latest=latest)
    assert snapshots.latest_id() is None and snapshots.latest() is None and snapshots.earliest_id() is None
    assert snapshots.ids() == []
    with pytest.raises(SnapshotNotFoundError, match="no snapshot yet"):
        snapshots.get(1)
    with pytest.raises(SnapshotNotFoundError):
        snapshots.by_time(10**15)
    with pytest.raises(SnapshotNotFoundError):
        snapshots.by_watermark(0)


def test_snapshot_of_a_stalled_writer_below_the_expired_ones_is_not_the_latest():
    snapshots = table(2, 9, 10, 11, latest=2, earliest=9)
    assert snapshots.latest_id() == 11
    assert snapshots.latest() == snapshot(11)


def test_far_stale_hint_ends_in_a_listing():
    assert table(*range(1, 101), latest=3).latest_id() == 100


def test_only_prefix_and_digits_are_ids():
    store = MemoryStore()
    for name in ("snapshot-99x", "snapshot-", "snapshot-³", "snapshot--1", "x-7", "snapshot-5.tmp", ".snapshot-8.tmp"):
        store.put(f"{ROOT}/snapshot/{name}", b"{}")
    store.make_directory(f"{ROOT}/snapshot/snapshot-77")
    assert table(5, store=store).ids() == [5]


def test_the_error_of_an_expired_snapshot_explains_how_to_keep_one():
    snapshots = table(4, 5)
    with pytest.raises(SnapshotExpiredError, match=r"num-retained.*time-retained.*tag") as caught:
        snapshots.get(3)
    assert caught.value.snapshot_id == 3
    for number in (0, -1, 6):
        with pytest.raises(SnapshotNotFoundError, match="it has snapshots 4 to 5") as missing:
            snapshots.get(number)
        assert not isinstance(missing.value, SnapshotExpiredError)


def test_file_of_another_snapshot_is_corruption():
    store = MemoryStore()
    store.put(f"{ROOT}/snapshot/snapshot-2", snapshot_to_json(snapshot(1)))
    with pytest.raises(CorruptionError, match="snapshot 1"):
        Snapshots(store, ROOT).find(2)


def test_half_written_file_is_read_again_until_it_is_whole():
    store, data = MemoryStore(), snapshot_to_json(snapshot(1))
    path = f"{ROOT}/snapshot/snapshot-1"
    store.put(path, data[:50])
    waits = Waits(lambda: store.put(path, data))
    assert Snapshots(store, ROOT, Env(waits)).get(1) == snapshot(1)
    assert waits.waited == [0.2]


@pytest.mark.parametrize("data", [b"", b'{"version" : 3', b"[]"])
def test_file_that_stays_half_written_is_corruption(data):
    store, waits = MemoryStore(), Waits()
    store.put(f"{ROOT}/snapshot/snapshot-1", data)
    with pytest.raises(CorruptionError) as caught:
        Snapshots(store, ROOT, Env(waits), ReadPolicy(attempts=4, wait_seconds=1.5)).get(1)
    assert waits.waited == [1.5] * 3
    assert caught.value.path == f"{ROOT}/snapshot/snapshot-1"


def test_a_broken_complete_file_is_not_read_again():
    store, waits = MemoryStore(), Waits()
    store.put(f"{ROOT}/snapshot/snapshot-1", b'{"version" : 3}')
    with pytest.raises(CorruptionError):
        Snapshots(store, ROOT, Env(waits)).get(1)
    assert waits.waited == []


@pytest.mark.parametrize(("millis", "expected"), [(4000, 4), (4001, 4), (4999, 4), (5000, 5), (7000, 7), (10**15, 7)])
def test_time_finds_the_latest_snapshot_not_after_it(millis, expected):
    assert table(4, 5, 6, 7).by_time(millis).id == expected


def test_time_before_the_oldest_snapshot_is_an_error():
    with pytest.raises(SnapshotExpiredError, match="oldest one is 4"):
        table(4, 5).by_time(3999)
    with pytest.raises(SnapshotNotFoundError) as caught:
        table(1, 2).by_time(0)
    assert not isinstance(caught.value, SnapshotExpiredError)


def test_snapshot_that_expires_during_the_search_is_passed_over():
    store = MemoryStore()
    snapshots = table(*range(1, 9), store=store, latest=8)
    store.delete(f"{ROOT}/snapshot/snapshot-4")
    assert snapshots.by_time(6500).id == 6


def marked(*watermarks) -> Snapshots:
    store = MemoryStore()
    for number, watermark in enumerate(watermarks, 1):
        store.put(f"{ROOT}/snapshot/snapshot-{number}", snapshot_to_json(snapshot(number, watermark=watermark)))
    return Snapshots(store, ROOT)


@pytest.mark.parametrize(
    ("watermarks", "asked", "expected"),
    [
        ((None, 10, None, 20, 20, None, 30), 10, 2),
        ((None, 10, None, 20, 20, None, 30), 5, 2),
        ((None, 10, None, 20, 20, None, 30), 11, 4),
        ((None, 10, None, 20, 20, None, 30), 20, 4),
        ((None, 10, None, 20, 20, None, 30), 21, 7),
        ((-5, 0, 7), -9, 1),
        ((-5, 0, 7), -4, 2),
        ((MIN_LONG, 3), -4, 2),
        ((3, None, None, None), 3, 1),
    ],
)
def test_watermark_finds_the_first_snapshot_that_reached_it(watermarks, asked, expected):
    assert marked(*watermarks).by_watermark(asked).id == expected


@pytest.mark.parametrize("watermarks", [(None, None), (1, 2), (MIN_LONG,)])
def test_watermark_that_was_never_reached_is_an_error(watermarks):
    with pytest.raises(SnapshotNotFoundError, match="watermark 3"):
        marked(*watermarks).by_watermark(3)


def test_a_hint_is_raised_and_never_lowered():
    store = MemoryStore()
    table(5, store=store, latest=5)
    raise_hint(store, f"{ROOT}/snapshot/LATEST", 4)
    assert store.get(f"{ROOT}/snapshot/LATEST") == b"5"
    raise_hint(store, f"{ROOT}/snapshot/LATEST", 6)
    assert store.get(f"{ROOT}/snapshot/LATEST") == b"6"


def test_hint_that_cannot_be_written_does_not_matter():
    class NoPut(MemoryStore):
        def put(self, path, data, *, within=None):
            raise StorageError("disk full", path=path, operation="put")

    store = NoPut()
    store.put_new(f"{ROOT}/snapshot/snapshot-1", snapshot_to_json(snapshot(1)))
    raise_hint(store, f"{ROOT}/snapshot/LATEST", 1)
    assert Snapshots(store, ROOT).latest() == snapshot(1)


def test_good_hint_needs_no_listing():
    class NoList(MemoryStore):
        def list(self, directory):
            raise AssertionError(directory)

    snapshots = table(4, 5, 6, store=NoList(), latest=5, earliest=4)
    assert snapshots.latest_id() == 6
    assert snapshots.latest().id == 6
    assert snapshots.earliest_id() == 4
    assert snapshots.by_time(5500).id == 5
