"""The page that compares says what programs saw."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def comparison():
    return runpy.run_path(str(ROOT / "docs" / "comparison" / "run.py"))


@pytest.mark.parametrize(
    "peer", ["paimon_py", *(pytest.param(name, marks=pytest.mark.full) for name in ("pypaimon", "deltalake", "pyiceberg"))]
)
def test_the_page_says_what_the_programs_saw(comparison, peer):
    said = comparison["column"](comparison["PAGE"].read_text(encoding="utf-8"), peer)
    assert said == list(comparison["answers"](peer).values()), "run python docs/comparison/run.py"
