"""Our streams, consumers, users, tags and branches go on where Java commits, expires and rolls back in between."""

from __future__ import annotations

import pytest
from histories import KINDS, HistoryLife
from pair import Pair

from paimon_py import CommitConflictError

pytestmark = pytest.mark.java


@pytest.mark.parametrize("kind", ["keyed", *(pytest.param(kind, marks=pytest.mark.full) for kind in KINDS if kind != "keyed")])
def test_a_short_life_beside_java(java, tmp_path, kind):
    HistoryLife(java("2.0.0"), tmp_path, kind, 0).play(25)


@pytest.mark.full
@pytest.mark.parametrize("version", ["2.0.0", "1.4.2"])
@pytest.mark.parametrize("seed", range(1, 9))
@pytest.mark.parametrize("kind", KINDS)
def test_a_long_life_beside_java(java, tmp_path, kind, seed, version):
    HistoryLife(java(version), tmp_path, kind, seed).play(80)


@pytest.mark.parametrize("version", ["2.0.0", pytest.param("1.4.2", marks=pytest.mark.full)])
@pytest.mark.parametrize("kind", ["keyed", "append"])
def test_a_number_that_java_rolled_back_and_expired_is_refused_and_one_whose_files_are_left_is_known(java, tmp_path, kind, version):
    pair = Pair(java(version), tmp_path)
    pair.create(KINDS[kind], "o")
    row = [{"k": 1, "v": 1}]
    for step in ("write", "write"):
        pair.step(step, rows=row)
    pair.table().write_arrow([{"k": 50, "v": 1}], user="u", identifier=5)
    pair.step("write", rows=[{"k": 2, "v": 1}])
    pair.step("expire", min=1, max=1, retainMillis=1)
    assert pair.table().committed("u") == 5
    assert pair.table().write_arrow([{"k": 50, "v": 1}], user="u", identifier=5).already_committed
    assert not pair.table().write_arrow([{"k": 60, "v": 1}], user="u", identifier=6).already_committed
    pair.step("rollback", snapshot=4)
    for number in range(3):
        pair.step("write", rows=[{"k": 10 + number, "v": 1}])
    pair.step("expire", min=1, max=1, retainMillis=1)
    table = pair.table()
    assert [one.id for one in table.snapshots()] == [7] and table.committed("u") is None
    for call in (
        lambda: table.filter_committed("u", [6]),
        lambda: table.write_arrow([{"k": 60, "v": 1}], user="u", identifier=6),
        lambda: table.delete("k = 1", user="u", identifier=6),
    ):
        with pytest.raises(CommitConflictError, match="cannot be determined whether 'u' has committed"):
            call()
    assert not table.write_arrow([{"k": 60, "v": 1}], user="u", identifier=7).already_committed
    assert table.scan(where="k = 60").count() == 1 and pair.step("read") and table.filter_committed("u", [6, 7, 8]) == [8]
