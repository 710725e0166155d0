"""Tables with long random lives whose changes are followed: what was there and its changes give what is there.

Changes are read snapshot by snapshot, as net changes between any two snapshots, and by streams that lag behind, lose
their place and take it up again, for every changelog producer, merge engine, file format and bucket mode.
"""

from __future__ import annotations

import pytest
from model.change_modes import MODES
from model.change_script import CHANGES
from model.table_script import LENGTH, lives

STEPS = 60_000
NAMES = [mode.name for mode in MODES]


@pytest.mark.parametrize("mode", MODES[::7], ids=NAMES[::7])
def test_changes_lead_from_one_snapshot_to_the_next(mode):
    assert lives(mode, [MODES.index(mode)], 25, CHANGES) > 0


@pytest.mark.full
@pytest.mark.parametrize("mode", MODES, ids=NAMES)
def test_changes_lead_from_one_snapshot_to_the_next_for_long(mode):
    wanted = -(-STEPS // len(MODES))
    assert lives(mode, range(100, 100 + -(-wanted // LENGTH)), LENGTH, CHANGES) >= wanted
