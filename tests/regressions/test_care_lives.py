"""Lives of `model.test_care_machines` that once ended in an error."""

from __future__ import annotations

import pytest
from model.test_care_machines import live


@pytest.mark.parametrize(
    ("kind", "seed", "steps"),
    [
        ("dynamic", 1001, 6),  # a tag could not go beside a kept changelog whose index manifest had gone
        ("keyed", 1087, 60),  # expiry of a branch took a file by which main's kept changelog told its changes
    ],
)
def test_a_life_that_once_failed(kind, seed, steps):
    live(kind, seed, steps)
