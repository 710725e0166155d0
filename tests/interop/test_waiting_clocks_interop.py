"""Waiting rows of machines whose clocks differ, beside Java: the later commit is the newer row, whoever publishes it."""

from __future__ import annotations

import random

import pytest
from pair import Kind, Pair, arrow_rows

from paimon_py import Table
from paimon_py.env import Env, SystemClock

pytestmark = pytest.mark.java

COLUMNS = [["p", "INT NOT NULL"], ["k", "INT NOT NULL"], ["v", "STRING"], ["c", "INT"]]
ENGINES = {
    "deduplicate": {},
    "partial-update": {"merge-engine": "partial-update"},
    "aggregation": {"merge-engine": "aggregation", "fields.v.aggregate-function": "last_value", "fields.c.aggregate-function": "sum"},
    "first-row": {"merge-engine": "first-row"},
}
VERSIONS = ["2.0.0", "1.4.2"]


class Moved(SystemClock):
    """A clock that is ahead of this machine's."""

    def __init__(self, by):
        super().__init__()
        self.by = by

    def millis(self):
        return super().millis() + self.by

    def local_millis(self):
        return super().local_millis() + self.by


def begun(java, directory, engine="deduplicate", by="o", **options):
    pair = Pair(java, directory)
    given = {"bucket": "-2", "postpone.default-bucket-num": "2", "snapshot.num-retained.min": "100",
             "snapshot.num-retained.max": "100", **ENGINES[engine], **options}  # fmt: skip
    pair.create(Kind(COLUMNS, ["p", "k"], ["p"], given), by)
    return pair


def ours(pair, rows, ahead=0):
    table = Table.open(str(pair.path), env=Env(Moved(ahead * 1000)))
    return table.write_arrow(arrow_rows(table.schema, pair.columns(), rows, kinds=True))


def one(value, key=1):
    return [{"p": 1, "k": key, "v": value, "c": 1}]


def published(pair, by):
    pair.act(("compact", True), by)
    return {row[1]: row[2] for row in pair.agree()}


@pytest.mark.parametrize("by", ["o", "j"])
@pytest.mark.parametrize("version", VERSIONS)
def test_the_later_commit_is_newer_whoever_publishes(java, tmp_path, version, by):
    pair = begun(java(version), tmp_path)
    for number, ahead in enumerate((3600, 0, 60, -3600, 0)):
        ours(pair, one(f"v{number}"), ahead)
    pair.table().analyze()
    pair.table().expire_snapshots(retain_min=1, retain_max=1)
    assert published(pair, by) == {1: "v4"}


@pytest.mark.parametrize("by", ["o", "j"])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_commit_of_ours_is_newer_than_what_java_committed_before(java, tmp_path, version, by):
    pair = begun(java(version), tmp_path, by="j")
    pair.act(("write", one("java")), "j")
    ours(pair, one("ours"), -3600)
    pair.act(("write", one("java", key=2)), "j")
    ours(pair, one("ours again"), -7200)
    assert pair.step("snapshot").get("properties") and not pair.step("snapshot", snapshot=3).get("properties")
    assert published(pair, by) == {1: "ours again", 2: "java"}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_commit_of_java_is_newer_than_ours_though_our_clock_is_ahead(java, tmp_path, version):
    """As long as its snapshot is there; Java itself goes by the clocks."""
    pair = begun(java(version), tmp_path, by="j")
    ours(pair, one("ours"), 3600)
    pair.act(("write", one("java")), "j")
    assert published(pair, "o") == {1: "java"}


@pytest.mark.parametrize("engine", [name if name == "partial-update" else pytest.param(name, marks=pytest.mark.full) for name in ENGINES])
def test_both_take_turns(java, tmp_path, engine):
    """Ours by machines with clocks of their own; the model is a table whose rows never wait."""
    rng = random.Random(engine)
    pair = begun(java("2.0.0"), tmp_path / "waiting", engine)
    model = Pair(java("2.0.0"), tmp_path / "model")
    model.create(Kind(COLUMNS, ["p", "k"], ["p"], {"bucket": "2", "write-only": "true", **ENGINES[engine]}), "o")
    for number in range(15):
        rows = [
            {"p": rng.randrange(2), "k": key, "v": None if rng.random() < 0.3 else f"v{number}", "c": rng.randrange(9)}
            for key in rng.sample(range(8), 4)
        ]
        model.act(("write", rows), "o")
        if rng.random() < 0.4:
            pair.act(("write", rows), "j")
        else:
            ours(pair, rows, rng.choice([0, 60, 3600, -60, -3600]))
        if number % 5 == 4:
            pair.act(("compact", False), "o")
    model.act(("compact", True), "o")
    assert sorted(pair.agree(), key=str) == sorted(model.agree(), key=str) != []
