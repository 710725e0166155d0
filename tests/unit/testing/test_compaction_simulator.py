"""Questions to `testing.compaction_simulator`: are its buckets possible ones, and is its model of keys near real keys?"""

from __future__ import annotations

import random

import pytest

from paimon_py.compaction.picker import Wait
from paimon_py.compaction.steps import Rewrite, Upgrade
from paimon_py.errors import OptionError
from paimon_py.testing.compaction_simulator import Workload, simulate, summary

LOADS = {
    "updates": Workload(rows=1_000, keys=20_000),
    "inserts": Workload(rows=1_000, updates=0.0),
    "both": Workload(rows=1_000, updates=0.5, keys=20_000),
    "ascending": Workload(rows=1_000, updates=0.0, ordered=True),
    "full": Workload(rows=1_000, updates=0.5, keys=20_000, full_every=7),
}
OPTIONS = [
    {"target-file-size": "200 kb"},
    {"target-file-size": "200 kb", "num-sorted-run.compaction-trigger": "2"},
    {"num-levels": "3", "compaction.max-size-amplification-percent": "50"},
    {"target-file-size": "1 mb", "deletion-vectors.enabled": "true"},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("load", LOADS)
def test_every_moment_is_a_possible_bucket(load, options):
    flushed = 0
    for moment in simulate(LOADS[load], options, 120):
        assert moment.flushed_bytes > flushed
        flushed = moment.flushed_bytes
        assert [run.level for run in moment.after] == sorted(run.level for run in moment.after)
        assert moment.stored_bytes >= moment.unique_bytes * 0.999
        assert len(moment.after) <= len(moment.runs)
        assert isinstance(moment.choice, Wait) <= (moment.steps == ())
        for run in moment.after:
            ranges = sorted((key(file.min_key), key(file.max_key)) for file in run.files)
            assert all(before[1] < after[0] for before, after in zip(ranges[:-1], ranges[1:], strict=True))


def key(row: bytes) -> int:
    return int.from_bytes(row[12:], "little")


def test_ascending_large_files_move_and_are_written_once():
    made = summary(simulate(Workload(rows=100_000, updates=0.0, ordered=True), {"target-file-size": "8 mb"}, 200))
    assert made.write_amplification == 1.0
    assert made.upgraded_files >= 195


def test_a_full_compaction_leaves_every_key_once():
    *_, last = simulate(LOADS["full"], {}, 70)
    assert last.stored_bytes == pytest.approx(last.unique_bytes, rel=1e-6)
    assert len(last.after) == 1


def test_the_model_of_keys_is_near_real_keys():
    load, rng = Workload(rows=500, keys=3_000, row_bytes=1), random.Random(5)
    written = {f"f{number}": {rng.randrange(load.keys) for _ in range(load.rows)} for number in range(1, 40)}
    files: dict[str, set[int]] = {}
    for moment in simulate(load, {}, 39):
        (new,) = (file.name for file in moment.runs[0].files)
        files[new] = written[f"f{moment.number}"]
        names = {file.name for run in moment.after for file in run.files}
        for step in moment.steps:
            if isinstance(step, Upgrade):
                continue
            (made,) = names - files.keys()
            files[made] = set().union(*(files[file.name] for file in step.files))
        for run in moment.after:
            for file in run.files:
                assert file.row_count == pytest.approx(len(files[file.name]), rel=0.1, abs=30)


def test_write_amplification_counts_every_byte_written():
    moments = list(simulate(LOADS["inserts"], {}, 50))
    rewritten = sum(file.size_bytes for m in moments for s in m.steps if isinstance(s, Rewrite) for file in s.files)
    assert moments[-1].write_amplification == 1 + rewritten / moments[-1].flushed_bytes


def test_settings_without_sense_are_refused():
    with pytest.raises(OptionError, match="num-levels"):
        next(simulate(Workload(), {"num-levels": "1"}, 1))
