"""What the doctor finds in a history, and that the calls it names mend it."""

from __future__ import annotations

import pytest
from unit.doctor.test_doctor import codes, only
from unit.maintain.test_idle_users import Users
from unit.maintain.test_remove_orphans import PATH, World, rows

from paimon_py import CommitConflictError
from paimon_py.metadata.consumers import Consumer
from paimon_py.metadata.cuts import ROLLBACK, Cut
from paimon_py.spec.snapshot import Base


def lived(count=4) -> World:
    world = World(**{"snapshot.num-retained.min": "9", "write-only": "true"})
    for number in range(1, count + 1):
        world.table.write_arrow(rows(number))
    return world


def history_codes(world):
    ours = ("history-", "newest-", "half-", "consumers-astray", "idle-users", "damaged")
    return [code for code in codes(world.table) if code.startswith(ours)]


def test_a_healthy_history_has_no_findings():
    assert history_codes(lived()) == []


@pytest.mark.parametrize(("gone", "latest"), [(["snapshot-3"], 4), (["snapshot-3", "LATEST"], 2)])
def test_a_gap_is_found_and_mended(gone, latest):
    world = lived()
    for name in gone:
        world.store.delete(f"{PATH}/snapshot/{name}")
    world.table = world.catalog.table("d.t")
    finding = only(world.table, "history-has-a-gap")
    assert finding.severity == "problem" and finding.places == ("snapshots 1 to 2", "snapshots 4 to 4")
    world.table.rollback_to(world.table.snapshot().id)
    assert history_codes(world) == [] and world.table.snapshot().id == latest


@pytest.mark.parametrize("gone", [["snapshot-4"], ["snapshot-3", "snapshot-4"]])
def test_missing_latest_snapshots_are_found_logged_and_mended(gone, caplog):
    world = lived()
    for name in gone:
        world.store.delete(f"{PATH}/snapshot/{name}")
    world.table = world.catalog.table("d.t")
    finding = only(world.table, "newest-snapshots-missing")
    left = 4 - len(gone)
    assert finding.severity == "problem" and finding.figure == len(gone) and f"rollback_to({left})" in finding.mend
    assert world.table.snapshot().id == left
    world.catalog.table("d.t").write_arrow(rows(5))
    assert f"LATEST hint refers to snapshot 4, but snapshot {left} is the newest" in caplog.text
    world.table.rollback_to(left)
    assert history_codes(world) == [] and world.store.get(f"{PATH}/snapshot/LATEST") == str(left).encode()


def test_a_seam_is_found_and_mended():
    world = lived()
    old = world.store.get(f"{PATH}/snapshot/snapshot-4")
    world.table.rollback_to(2)
    world.table.write_arrow(rows(30))
    world.store.put(f"{PATH}/snapshot/snapshot-4", old)
    finding = only(world.table, "history-has-a-seam")
    assert finding.places == ("snapshot 4",) and finding.mend.startswith("table.rollback_to(3)")
    world.table.rollback_to(3)
    assert history_codes(world) == []


def test_an_interrupted_rollback_is_found_and_mended():
    world = lived()
    target = world.table._root.snapshots.get(2)
    world.table._root.cuts.begin(Cut(owner="me", verb=ROLLBACK, snapshots=(target,)), takes_over=False)
    assert only(world.table, "history-is-cut").mend == "table.rollback_to(2)"
    with pytest.raises(CommitConflictError):
        world.table.create_tag("t")
    world.table.rollback_to(2)
    assert history_codes(world) == []


def test_an_incomplete_branch_is_found_and_mended():
    world = lived()
    world.table.create_branch("b")
    world.store.delete(f"{PATH}/branch/branch-b/schema/schema-0")
    finding = only(world.table, "half-branches")
    assert finding.places == ("b",) and finding.mend == "table.delete_branch('b')"
    world.table.delete_branch("b")
    assert history_codes(world) == []


@pytest.mark.parametrize("more", [0, 1, 2, 3])
def test_a_consumer_of_a_rolled_back_snapshot_is_found_and_mended(more):
    world = lived()
    consumers, last = world.table._root.consumers, world.table._root.snapshots.latest()
    consumers.put(Consumer("job", 5), Base.of(last))
    assert history_codes(world) == []
    with pytest.warns(match="job"):
        world.table.rollback_to(2)
    for number in range(more):
        world.table.write_arrow(rows(10 + number))
    assert only(world.table, "consumers-astray").places == ("job: read up to 4",)
    world.table.reset_consumer("job", 3)
    assert history_codes(world) == []


def test_idle_users_are_found_and_mended():
    world = Users()
    world.pass_days(31)
    assert only(world.table, "idle-users").places == ("old",)
    world.table.remove_orphans(dry_run=False)
    assert history_codes(world) == []
