"""Tables of every bucket mode with long random lives: what they hold is what dictionaries and lists would.

Upsert, delete, update, merge, compaction, rescaling, lookup and all else that a table offers, by processes that do not
know of each other. After every step the whole table is read and compared, and no file may be lost or left over.
"""

from __future__ import annotations

import pytest
from model.table_modes import MODES
from model.table_script import LENGTH, lives

STEPS = 60_000
NAMES = [mode.name for mode in MODES]


@pytest.mark.parametrize("mode", MODES, ids=NAMES)
def test_tables_hold_what_dictionaries_would(mode):
    assert lives(mode, [MODES.index(mode)], 15) > 0


@pytest.mark.full
@pytest.mark.parametrize("mode", MODES, ids=NAMES)
def test_tables_hold_what_dictionaries_would_for_long(mode):
    wanted = -(-STEPS // len(MODES))
    assert lives(mode, range(100, 100 + -(-wanted // LENGTH)), LENGTH) >= wanted
