"""Random scripts about changes: Java streams what we wrote, we stream what Java wrote, and both tell the same."""

from __future__ import annotations

import change_scripts
import engine_play
import pytest
from engine_play import TURNS, play

pytestmark = pytest.mark.java

SEEDS = range(200)
QUICK = range(6)
OLDER = [(version, seed) for version in ("0.9.0", "1.4.2") for seed in range(1000, 1015)]


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=() if seed in QUICK else pytest.mark.full) for seed in SEEDS])
def test_changes_are_the_same_whoever_writes_and_whoever_reads(seed, java, tmp_path):
    script = change_scripts.drawn(seed)
    turns = ("j", ("oj", "o", "jo")[seed % 3]) if seed in QUICK else TURNS
    tables = play(java("2.0.0"), tmp_path, script, turns)
    change_scripts.check(script, tables)
    engine_play.check(script, tables)


@pytest.mark.full
@pytest.mark.parametrize(("version", "seed"), OLDER)
def test_older_javas_and_we_follow_each_other(version, seed, java, tmp_path):
    """Between two snapshots Java 0.9 merges what was written, and 1.4 leaves out what waits for a compaction.

    Where level 0 is hidden and no compaction tells of it, Java 0.9 reads the first snapshot of a stream twice.
    """
    script = change_scripts.drawn(seed)
    has_hidden = "deletion-vectors.enabled" in script.options and script.options.get("changelog-producer") != "lookup"
    leaves_out = {"deletion-vectors.enabled", "merge-engine"} & script.options.keys()
    modes = () if version < "1" or leaves_out else change_scripts.MODES
    tables = play(java(version), tmp_path, script, ("j", "oj", "jo"))
    change_scripts.check(script, tables, modes, rereads=version < "1" and has_hidden)
