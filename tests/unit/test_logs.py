"""What a person who looks after a job reads in the log: commits, races, retries, compactions, spills, expiry; no secrets."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from datetime import timedelta

import pyarrow as pa
import pytest
from unit.commit.support import Clock
from unit.public import new_catalog

from paimon_py import CommitConflictError, Schema, StorageError
from paimon_py.env import Env
from paimon_py.lsm.spill import SpilledRuns, SpillSettings
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.storage.retry import RetryStore

COLUMNS = [("k", "BIGINT NOT NULL"), ("v", "STRING")]
ROWS = pa.table({"k": range(10), "v": ["sesame"] * 10})


@pytest.fixture
def logged(caplog):
    """A function that gives the lines of one logger."""
    caplog.set_level(logging.INFO, "paimon_py")
    return lambda name: [(r.levelname, r.getMessage()) for r in caplog.records if r.name == f"paimon_py.{name}"]


@pytest.fixture
def table(tmp_path):
    catalog = new_catalog(str(tmp_path))
    options = {"bucket": "1", "write-only": "true", "my.secret": "sesame"}
    return catalog.create_table("d.t", Schema(COLUMNS), primary_key=["k"], options=options)


def test_a_commit_says_what_it_published(table, logged):
    table.write_arrow(ROWS)
    ((level, line),) = logged("commits")
    assert level == "INFO"
    assert f"{table.location}: snapshot 1, APPEND by " in line and "1 files added, 0 deleted, 10 rows; attempt 1" in line


def test_a_lost_race_and_a_conflict_are_told(table, logged):
    with table.writer() as writer:
        writer.write_arrow(ROWS)
        changes = writer.changes()
    root, others = table._root, []
    committer = type(root.committer())
    real = committer.publish

    def late(self, *args, **more):
        if not others:
            others.append(None)
            table.write_arrow(ROWS)
        return real(self, *args, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(committer, "publish", late)
        table.commit(changes)
    lines = logged("commits")
    assert [line.split(", APPEND")[0].rpartition(": ")[2] for _, line in lines if "APPEND" in line] == ["snapshot 1", "snapshot 2"]
    assert any("attempt 1 lost, the next one in" in line for _, line in lines)
    table.compact(full=True)
    with pytest.raises(CommitConflictError):
        table.commit(table.run_compaction(task) for task in stale(table))
    assert [level for level, line in logged("commits") if "a conflict" in line] == ["WARNING"]


def stale(table):
    """Tasks whose files another compaction replaces before they are committed."""
    for _ in range(2):
        table.write_arrow(ROWS)
    tasks = table.compaction_tasks(full=True)
    changes = [table.run_compaction(task) for task in tasks]
    table.compact(full=True)
    table.run_compaction = lambda _: changes[0]
    return tasks


def test_compactions_and_expiry_say_what_became_of_files(table, logged):
    for _ in range(3):
        table.write_arrow(ROWS)
    table.compact(full=True)
    ((_, line),) = logged("compactions")
    assert "bucket-0: 3 files became 1 on level 5 (30 rows" in line
    table.expire_snapshots(retain_min=1, retain_max=1)
    ((level, line),) = logged("expiry")
    assert level == "INFO" and "snapshots 1 to 3 expired, with 3 data files" in line
    table.remove_orphans(older_than=timedelta(1), dry_run=False)
    assert "orphans were deleted" in logged("expiry")[-1][1]


def test_a_call_that_is_tried_again_is_told_without_what_signs_it(logged):
    class Failing(MemoryStore):
        left = 2

        def get(self, path):
            if self.left:
                self.left -= 1
                raise StorageError("GET https://u:sesame@h/x?sig=sesame failed", path=path, operation="get", transient=True)
            return super().get(path)

    store = Failing()
    store.put("/x", b"1")
    assert RetryStore(store, clock=Clock()).get("/x") == b"1"
    lines = logged("retries")
    assert [level for level, _ in lines] == ["WARNING"] * 2
    assert lines[0][1].startswith("attempt 1 of 4 failed: GET https://h/x") and not any("sesame" in line for _, line in lines)


def test_rows_that_go_to_disk_are_told(logged):
    runs = SpilledRuns(Env().spill, SpillSettings())
    runs.add(ROWS.to_batches())
    runs.clear()
    ((_, line),) = logged("spills")
    assert line.startswith("spilled 10 rows, ")


def test_nothing_is_shown_until_a_program_asks_and_no_values_ever(table, caplog):
    handlers = logging.getLogger("paimon_py").handlers
    assert any(isinstance(handler, logging.NullHandler) for handler in handlers)
    caplog.set_level(logging.DEBUG, "paimon_py")
    table.write_arrow(ROWS)
    table.update("k = 1", {"v": "sesame"})
    table.delete("v = 'sesame'")
    table.compact(full=True)
    assert caplog.records and "sesame" not in caplog.text


def test_the_snapshots_of_one_call_are_each_a_first_attempt(tmp_path, logged):
    options = {"bucket": "1", "num-sorted-run.compaction-trigger": "2"}
    table = new_catalog(str(tmp_path)).create_table("d.t", Schema(COLUMNS), primary_key=["k"], options=options)
    for _ in range(2):
        table.write_arrow(ROWS)
    lines = [line for _, line in logged("commits")]
    assert [("COMPACT" in line, "attempt 1," in line) for line in lines] == [(False, True), (False, True), (True, True)]


def test_tags_changelogs_and_rollbacks_are_told(tmp_path, logged):
    options = {"bucket": "1", "changelog-producer": "input", "write-only": "true", "changelog.num-retained.min": "9",
               "changelog.num-retained.max": "9", "snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"}  # fmt: skip
    table = new_catalog(str(tmp_path)).create_table("d.t", Schema(COLUMNS), primary_key=["k"], options=options)
    for _ in range(5):
        table.write_arrow(ROWS)
    table.create_tag("old", 5)
    os.utime(tmp_path / "d.db" / "t" / "tag" / "tag-old", (1, 1))
    assert table.expire_tags(older_than=timedelta(1)) == ["old"]
    assert logged("expiry")[-1] == ("INFO", f"{table.location}: tag 'old' expired; it referred to snapshot 5")
    table.expire_snapshots(retain_min=2, retain_max=2)
    table.expire_changelogs(retain_min=1, retain_max=3, older_than=timedelta(milliseconds=-1))
    assert logged("expiry")[-1][1].startswith(f"{table.location}: changelogs 1 to 2 expired, with 2 data files; ")
    table.rollback_to(4)
    assert logged("commits")[-1] == ("INFO", f"{table.location}: rolled back to snapshot 4, deleted 1 later ones")


def test_a_process_that_sets_no_logging_up_says_nothing(table):
    code = f"""
import pyarrow as pa
from paimon_py import Table
table = Table.open({table.location!r})
table.write_arrow(pa.table({{"k": [1], "v": ["a"]}}))
table.compact(full=True)
import logging
logging.getLogger("paimon_py").warning("nobody asked")
logging.getLogger("paimon_py.commits").error("nobody asked")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
