"""Questions to `scan.time_travel`: is exactly one state chosen, and is everything else refused by name?"""

from __future__ import annotations

import pickle
import time
from datetime import datetime, timedelta, timezone

import pytest

from paimon_py import Catalog, SetOption
from paimon_py.errors import OptionError, TagNotFoundError, UnsupportedError, UsageError
from paimon_py.scan.incremental import Incremental
from paimon_py.scan.time_travel import FoundState, Travel, find_state, travel_of
from paimon_py.spec.schema import TableSchema


def test_nothing_chosen_is_the_latest():
    assert travel_of().is_latest
    assert travel_of(options={"scan.mode": "latest-full", "snapshot.num-retained.min": "3"}).is_latest


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"scan.snapshot-id": "3"}, Travel(snapshot_id=3)),
        ({"scan.snapshot-id": "3", "scan.mode": "from-snapshot"}, Travel(snapshot_id=3)),
        ({"scan.tag-name": "t"}, Travel(tag="t")),
        ({"scan.watermark": "9"}, Travel(watermark=9)),
        ({"scan.timestamp-millis": "7", "scan.mode": "from-timestamp"}, Travel(timestamp_millis=7)),
        ({"scan.version": "v1"}, Travel(version="v1")),
        ({"scan.mode": "compacted-full"}, Travel(compacted=True)),
        ({"scan.mode": "latest-delta"}, Incremental(latest=True, mode="delta")),
        ({"scan.file-creation-time-millis": "5"}, Travel(file_millis=5)),
        ({"scan.mode": "from-file-creation-time", "scan.file-creation-time-millis": "5"}, Travel(file_millis=5)),
        ({"scan.creation-time-millis": "5", "scan.mode": "from-creation-timestamp"}, Travel(creation_millis=5)),
        ({"incremental-between": "3,7"}, Incremental(between=("3", "7"))),
        (
            {"incremental-between": "a,b", "incremental-between-scan-mode": "diff", "scan.mode": "incremental"},
            Incremental(between=("a", "b"), mode="diff"),
        ),
        (
            {"incremental-between": "a,b", "incremental-between-tag-to-snapshot": "true"},
            Incremental(between=("a", "b"), tags_to_snapshots=True),
        ),
        ({"incremental-between-timestamp": "3,7"}, Incremental(times=(3, 7))),
        ({"incremental-to-auto-tag": "2024-01-02"}, Incremental(auto_tag="2024-01-02")),
    ],
)
def test_every_option_of_java_chooses_its_place(options, expected):
    assert travel_of(options=options) == expected


def test_times_are_datetimes_or_epoch_milliseconds():
    moment = datetime(2024, 1, 2, 3, 4, 5, 678_900, tzinfo=timezone(timedelta(hours=2)))
    assert travel_of(timestamp=moment) == Travel(timestamp_millis=1_704_157_445_678)
    assert travel_of(timestamp=12) == Travel(timestamp_millis=12)
    local = datetime(2024, 1, 2, 3, 4, 5)  # noqa: DTZ001
    assert travel_of(timestamp=local) == travel_of(timestamp=local.astimezone(timezone.utc))
    assert travel_of(options={"scan.timestamp": "2024-01-02 03:04:05"}) == travel_of(timestamp=local)


@pytest.mark.parametrize(
    "chosen",
    [
        {"snapshot_id": 1, "tag": "a"},
        {"snapshot_id": 1, "options": {"scan.tag-name": "a"}},
        {"snapshot_id": 1, "options": {"scan.snapshot-id": "1"}},
        {"options": {"scan.snapshot-id": "1", "scan.watermark": "2"}},
        {"timestamp": 1, "options": {"scan.timestamp-millis": "2"}},
        {"timestamp": "January"},
        {"snapshot_id": "3"},
        {"snapshot_id": True},
        {"options": {"scan.mode": "from-snapshot"}},
        {"snapshot_id": 1, "options": {"scan.mode": "latest"}},
        {"snapshot_id": 1, "options": {"scan.mode": "compacted-full"}},
        {"snapshot_id": 1, "options": {"incremental-between": "1,2"}},
        {"options": {"incremental-between": "1,2", "scan.snapshot-id": "3"}},
        {"options": {"incremental-between": "1,2", "scan.mode": "latest-full"}},
        {"options": {"scan.mode": "incremental"}},
        {"options": {"scan.mode": "from-file-creation-time"}},
        {"options": {"scan.mode": "from-creation-timestamp", "scan.file-creation-time-millis": "1"}},
        {"options": {"incremental-between": "1"}},
        {"options": {"incremental-between": "1,2,3"}},
        {"options": {"incremental-between-timestamp": "7,3"}},
        {"options": {"incremental-between-timestamp": "yesterday,today"}},
    ],
)
def test_two_places_or_a_wrong_value_are_refused(chosen):
    with pytest.raises(UsageError):
        travel_of(**chosen)


def test_bad_option_values_name_the_option():
    with pytest.raises(OptionError, match=r"scan\.snapshot-id"):
        travel_of(options={"scan.snapshot-id": "x"})
    with pytest.raises(OptionError, match=r"scan\.timestamp"):
        travel_of(options={"scan.timestamp": "yesterday"})


@pytest.mark.parametrize("options", [{"scan.fallback-delta-branch": "b"}, {"scan.fallback-snapshot-branch": "b"}])
def test_unsupported_options_are_refused_by_name(options):
    with pytest.raises(UnsupportedError) as caught:
        travel_of(options=options)
    assert next(iter(options)) in caught.value.feature


def test_stored_options_choose_only_when_the_caller_does_not():
    stored = {"scan.snapshot-id": "4", "scan.infer-parallelism": "true"}
    assert travel_of(stored=stored) == Travel(snapshot_id=4)
    assert travel_of(stored=stored, tag="t") == Travel(tag="t")
    stored = {"incremental-between": "1,2", "incremental-between-scan-mode": "diff"}
    assert travel_of(stored=stored) == Incremental(between=("1", "2"), mode="diff")
    assert travel_of(stored=stored, snapshot_id=3) == Travel(snapshot_id=3)
    assert travel_of(stored={"incremental-between-scan-mode": "diff"}, options={"incremental-between": "1,2"}) == (
        Incremental(between=("1", "2"), mode="diff")
    )
    assert travel_of(stored={"scan.fallback-delta-branch": "b"}) == Travel()


def new_schema():
    return TableSchema(id=0, fields=(), highest_field_id=0)


class Root:
    """Tags and snapshots that answer with what they were asked."""

    def __init__(self):
        self.snapshots = self.tags = self

    def get(self, what):
        if what in ("1", "watermark-5", "gone"):
            raise TagNotFoundError(what)
        if isinstance(what, str):
            return type("Tag", (), {"snapshot": f"tag {what}"})
        return f"snapshot {what}"

    def latest(self):
        return "latest"

    def by_time(self, millis):
        return f"time {millis}"

    def by_watermark(self, watermark):
        return f"watermark {watermark}"


@pytest.mark.parametrize(
    ("travel", "found"),
    [
        (Travel(), "latest"),
        (Travel(snapshot_id=2), "snapshot 2"),
        (Travel(tag="t"), "tag t"),
        (Travel(timestamp_millis=3), "time 3"),
        (Travel(watermark=4), "watermark 4"),
        (Travel(version="t"), "tag t"),
        (Travel(version="1"), "snapshot 1"),
        (Travel(version="watermark-5"), "watermark 5"),
    ],
)
def test_every_place_is_looked_up_where_it_lies(travel, found):
    assert find_state(Root(), travel, new_schema()) == FoundState(found)


def test_a_version_that_is_nothing_is_reported_as_a_missing_tag():
    with pytest.raises(TagNotFoundError):
        find_state(Root(), Travel(version="gone"), new_schema())


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/Los_Angeles"])
def test_files_are_chosen_by_the_local_time_that_they_store(zone, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        try:
            catalog = Catalog.open(str(tmp_path))
            catalog.create_database("d")
            table = catalog.create_table("d.t", {"k": "INT"})
            table.write_arrow([{"k": 1}])
            made = table.snapshot().time_millis
            for name in ("scan.file-creation-time-millis", "scan.creation-time-millis"):
                counts = [table.scan(options={name: str(made + shift * 3_600_000)}).count() for shift in (-1, 1)]
                assert counts == [1, 0]
            (entry,) = [entry for manifest in table.snapshot().manifests() for entry in manifest.entries()]
            written = entry.file.creation_time_millis - time.localtime().tm_gmtoff * 1000
            counts = [table.scan(options={"scan.file-creation-time-millis": str(written + shift)}).count() for shift in (-1, 0, 1)]
            assert counts == [1, 1, 0]
        finally:
            patch.undo()
            time.tzset()


def test_options_of_one_scan_apply_to_states_under_earlier_schemas():
    catalog = Catalog.open("memory://given")
    catalog.drop_database("d", missing_ok=True, cascade=True)
    catalog.create_database("d")
    options = {"bucket": "1", "deletion-vectors.enabled": "true", "write-only": "true"}
    table = catalog.create_table("d.t", {"k": "BIGINT NOT NULL", "v": "BIGINT"}, primary_key=["k"], options=options)
    table.write_arrow([{"k": 1, "v": 1}])
    table.create_tag("first")
    sees_all = {"deletion-vectors.merge-on-read": "true"}
    assert table.scan(tag="first", options=sees_all).count() == 1
    table.alter(SetOption("target-file-size", "1 mb"))
    table.write_arrow([{"k": 2, "v": 2}])
    for at in ({"tag": "first"}, {"snapshot_id": 1}):
        assert table.scan(**at).count() == 0
        found = table.scan(**at, options=sees_all)
        assert found.to_arrow().to_pylist() == [{"k": 1, "v": 1}] == pickle.loads(pickle.dumps(found)).to_arrow().to_pylist()
