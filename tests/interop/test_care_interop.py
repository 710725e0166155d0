"""Java cares for tables that we wrote (expiry, orphans, tags, rollback), and commits that cross each other."""

from __future__ import annotations

import concurrent.futures
import os
from collections.abc import Callable

import pytest
from pair import Kind, Pair, play, same_histories
from values import arrow_rows, canonical_rows, difference

from paimon_py import Catalog, Changes, PaimonError, SetOption

pytestmark = pytest.mark.java

KEYED = Kind([["k", "INT NOT NULL"], ["v", "STRING"]], ["k"], options={"bucket": "2", "write-only": "true"})


def keyed(*numbers: int, v: str = "v") -> list[dict]:
    return [{"k": number, "v": f"{v}{number}"} for number in numbers]


def files_below(pair: Pair) -> set[str]:
    return {str(path.relative_to(pair.path)) for path in pair.path.rglob("*") if path.is_file()}


@pytest.fixture
def pair(java, tmp_path) -> Pair:
    """Five snapshots of ours and a tag on the second."""
    script = [("write", keyed(*range(9))), ("overwrite", {}, keyed(1, 2)), ("tag", "kept"), ("write", keyed(2, 3)),
              ("overwrite", {}, keyed(4, 5)), ("write", [{"k": 4, "_kind": "-D"}])]  # fmt: skip
    return play(java("2.0.0"), tmp_path, KEYED, script, turns=("o",))["o"]


def test_java_expires_our_snapshots_and_all_that_is_left_can_be_read(pair, java, tmp_path):
    twin = play(java("2.0.0"), tmp_path / "twin", KEYED, [("write", keyed(*range(9))), ("overwrite", {}, keyed(1, 2)), ("tag", "kept"), ("write", keyed(2, 3)), ("overwrite", {}, keyed(4, 5)), ("write", [{"k": 4, "_kind": "-D"}])], turns=("j",))["j"]
    tagged = pair.our_rows(tag="kept")
    states = {}
    for each in (pair, twin):
        assert each.step("expire", min=1, max=1, retainMillis=0) == 4
        assert [s.id for s in each.table().snapshots()] == [5]
        assert difference(each.columns(), canonical_rows(each.columns(), keyed(5)), each.agree()) is None
        assert difference(each.columns(), tagged, each.our_rows(tag="kept")) is None
        states[each] = sorted(os.path.dirname(name) for name in files_below(each))
    assert states[pair] == states[twin], "other files are left of our table than of Java's"
    pair.our_write(keyed(9))
    pair.agree()


def test_java_finds_no_orphan_among_our_live_files(pair):
    old = 1_000_000_000
    for name in files_below(pair):
        os.utime(pair.path / name, (old, old))
    assert pair.step("orphan", olderThan="2015-01-01 00:00:00", dryRun=True) == []
    before = files_below(pair)
    pair.step("orphan", olderThan="2015-01-01 00:00:00", dryRun=False)
    assert files_below(pair) == before
    pair.agree()


def test_java_rolls_our_table_back(pair):
    wanted = pair.our_rows(snapshot_id=3)
    pair.step("rollback", snapshot=3)
    assert difference(pair.columns(), wanted, pair.agree()) is None
    assert pair.table().snapshot().id == 3
    pair.our_write(keyed(7))
    assert pair.table().snapshot().id == 4
    pair.agree()


def test_java_rolls_back_and_writes_on_under_our_open_writer(pair):
    """Its new snapshots take the numbers of those that our writer began on."""
    table = pair.table()
    last = table.snapshot().id
    with table.writer() as writer:
        writer.write_arrow(arrow_rows(table.schema, pair.columns(), keyed(1, 90, v="ours"), kinds=True))
        files = files_below(pair)
        pair.step("rollback", snapshot=2)
        gone = {os.path.dirname(path) for path in files - files_below(pair)}
        assert gone <= {"snapshot"}, "2.0 deletes no other file"
        while pair.table().snapshot().id < last:
            pair.act(("write", keyed(*range(8), v="theirs")), "j")
        table.commit(writer.changes())
        assert pair.table().snapshot().id == last + 1
    expected = [*keyed(1, 90, v="ours"), *keyed(0, *range(2, 8), v="theirs")]
    assert difference(pair.columns(), canonical_rows(pair.columns(), expected), pair.agree()) is None


def test_java_deletes_and_renames_our_tags_and_we_its(pair):
    pair.step("tag", name="java")
    pair.step("tag", name="kept", rename="renamed")
    assert [tag.name for tag in pair.table().tags()] == ["java", "renamed"]
    pair.table().delete_tag("java")
    with pytest.raises(Exception, match="java"):
        pair.step("read", options={"scan.tag-name": "java"})


def test_java_analyzes_our_table_and_we_carry_the_statistics_on(pair):
    pair.step("analyze", columns=["k"])
    name = pair.step("snapshot")["statistics"]
    pair.our_write(keyed(8))
    assert pair.step("snapshot")["statistics"] == name
    pair.agree()


def meanwhile(pair: Pair, before: list[dict], action: Callable[[], object], after: list[dict]) -> list[dict]:
    """Outputs of a script of Java's in whose middle we act.

    Java stops where it opens the schema of a table that is a named pipe; opening the other end waits for that.
    """
    gate = pair.warehouse / "db.db" / "gate" / "schema" / "schema-0"
    gate.parent.mkdir(parents=True)
    os.mkfifo(gate)
    steps = [*before, {"op": "schema", "table": "db.gate"}, *after]
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(pair.steps, steps, check=False)
        while True:
            try:
                pipe = os.open(gate, os.O_WRONLY | os.O_NONBLOCK)
                break
            except OSError:
                assert not running.done(), running.result()
        action()
        text = (pair.path / "schema" / "schema-0").read_bytes()
        gate.unlink()
        gate.write_bytes(text)
        os.write(pipe, text)
        os.close(pipe)
        outputs = running.result()
    return [*outputs[: len(before)], *outputs[len(before) + 1 :]]


def changes_of(table, columns: list, rows: list[dict], overwrite: bool = False) -> Changes:
    with table.writer(overwrite=overwrite) as writer:
        writer.write_arrow(arrow_rows(table.schema, columns, rows))
        return writer.changes()


def test_two_appends_cross_and_the_later_commit_is_the_newer(java, tmp_path):
    pairs = play(java("2.0.0"), tmp_path, KEYED, [("write", keyed(1, 2, 3))], turns=("o", "j"))
    held = pairs["o"]
    outputs = meanwhile(
        held, [{"op": "write", "rows": keyed(3, 4, v="java"), "hold": "h"}],
        lambda: held.our_write(keyed(2, 3, v="ours")), [{"op": "commit", "held": "h"}],
    )  # fmt: skip
    assert all(output["ok"] for output in outputs), outputs
    columns = held.columns()
    assert [s.id for s in held.table().snapshots()] == [1, 2, 3]
    # Both versions of key 3 have the same sequence number: which one wins is nobody's promise.
    sure = canonical_rows(columns, [*keyed(1), *keyed(2, v="ours"), *keyed(4, v="java")])
    for rows in (held.our_rows(), held.java_rows()):
        assert [row for row in sorted(rows) if row[0] != 3] == sure
    held.step("compact", options={"write-only": "false"})
    held.agree()

    other = pairs["j"]
    table = other.table()
    changes = changes_of(table, columns, keyed(2, 3, v="ours"))
    other.step("write", rows=keyed(3, 4, v="java"))
    table.commit(changes, user="we", identifier=1)
    want = canonical_rows(columns, [*keyed(1), *keyed(2, 3, v="ours"), *keyed(4, v="java")])
    assert difference(columns, want, other.agree()) is None
    other.step("compact", options={"write-only": "false"})
    assert difference(columns, want, other.agree()) is None


def test_java_compacts_under_a_commit_of_ours(java, tmp_path):
    pair = play(java("2.0.0"), tmp_path, KEYED, [("write", keyed(1, 2, 3, v=f"{n}-")) for n in range(3)], turns=("o",))["o"]
    table = pair.table()
    changes = changes_of(table, pair.columns(), keyed(2, v="ours"))
    pair.step("compact", options={"write-only": "false"})
    result = table.commit(changes)
    want = canonical_rows(pair.columns(), [*keyed(1, 3, v="2-"), *keyed(2, v="ours")])
    assert difference(pair.columns(), want, pair.agree()) is None
    assert result.snapshot_id == 5


@pytest.mark.parametrize("ours", ["overwrite", "append"])
def test_a_compaction_that_java_holds_survives_our_append_and_fails_after_our_overwrite(ours, java, tmp_path):
    pair = play(java("2.0.0"), tmp_path, KEYED, [("write", keyed(1, 2, 3)), ("write", keyed(2, 3))], turns=("o",))["o"]
    compact = {"op": "write", "rows": keyed(3, v="java"), "hold": "h", "compact": "full", "options": {"write-only": "false"}}
    outputs = meanwhile(
        pair, [compact], lambda: pair.our_write(keyed(2), **({"overwrite": {}} if ours == "overwrite" else {})),
        [{"op": "commit", "held": "h"}],
    )  # fmt: skip
    assert outputs[-1]["ok"] == (ours == "append"), outputs
    left = [2] if ours == "overwrite" else [1, 2, 3]
    assert sorted(row[0] for row in pair.agree()) == sorted({*left, 3} if not outputs[-1]["ok"] and 3 in rows_now(pair) else left)
    pair.our_write(keyed(8))
    pair.step("compact", options={"write-only": "false"})
    pair.agree()


def rows_now(pair: Pair) -> list:
    return [row[0] for row in pair.our_rows()]


def test_our_overwrite_sees_what_java_committed_meanwhile(java, tmp_path):
    pair = Pair(java("2.0.0"), tmp_path)
    pair.create(KEYED, "o")
    pair.our_write(keyed(1, 2))
    table = pair.table()
    changes = changes_of(table, pair.columns(), keyed(5), overwrite=True)
    pair.step("write", rows=keyed(3, 4, v="java"))
    table.commit(changes, overwrite={})
    assert difference(pair.columns(), canonical_rows(pair.columns(), keyed(5)), pair.agree()) is None


def test_identifiers_count_for_both(java, tmp_path):
    """A job that Java ran up to identifier 5 is continued by us, and the other way round."""
    pair = Pair(java("2.0.0"), tmp_path)
    pair.create(KEYED, "o")
    pair.step("write", rows=keyed(1), user="job", id=5)
    table = pair.table()
    for identifier, expected in ((5, True), (6, False)):
        changes = changes_of(table, pair.columns(), keyed(identifier))
        result = table.commit(changes, user="job", identifier=identifier)
        assert result.already_committed is expected
    again = pair.step("write", rows=keyed(60), user="job", id=6, filter=True)
    assert "committed=0" in str(again) or not again or pair.table().snapshot().id == 2
    assert difference(pair.columns(), canonical_rows(pair.columns(), keyed(1, 6)), pair.agree()) is None


def test_java_rescales_our_table_and_we_write_into_the_new_buckets(java, tmp_path):
    pair = play(java("2.0.0"), tmp_path, KEYED, [("write", keyed(*range(20))), ("write", keyed(*range(0, 20, 2), v="w"))], turns=("o",))["o"]
    before = pair.agree()
    pair.step("rescale", bucket=5)
    assert difference(pair.columns(), before, pair.agree()) is None
    assert {split.total_buckets for split in pair.table().scan().splits()} == {5}
    pair.our_write(keyed(*range(20), v="n"))
    assert difference(pair.columns(), canonical_rows(pair.columns(), keyed(*range(20), v="n")), pair.agree()) is None


def test_a_write_that_does_not_fit_the_buckets_is_refused_by_both(java, tmp_path):
    pair = play(java("2.0.0"), tmp_path, KEYED, [("write", keyed(*range(20)))], turns=("o",))["o"]
    pair.table().alter(SetOption("bucket", "4"))
    with pytest.raises(PaimonError, match="bucket"):
        pair.our_write(keyed(*range(20), v="n"))
    assert difference(pair.columns(), canonical_rows(pair.columns(), keyed(*range(20))), pair.agree()) is None


def test_a_database_and_table_that_java_drops_or_makes_is_seen(java, tmp_path):
    pair = Pair(java("2.0.0"), tmp_path)
    pair.create(KEYED, "j")
    catalog = Catalog.open(str(tmp_path))
    assert catalog.tables("db") == ["t"]
    pair.step("drop")
    assert catalog.tables("db") == []
    same = play(java("2.0.0"), tmp_path, KEYED, [("write", keyed(1))], turns=("oj",))
    same_histories(same)
