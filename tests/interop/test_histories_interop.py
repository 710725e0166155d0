"""Our streams, consumers, users, tags and branches go on where Java commits, expires and rolls back in between."""

from __future__ import annotations

import pytest
from histories import KINDS, HistoryLife

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
