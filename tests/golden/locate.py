"""Where the golden corpus lies: the whole one beside the checkout if it is there, else the sample in the project."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent
SHARED = HERE.parents[2] / "shared" / "golden"
CORPUS = SHARED if SHARED.is_dir() else HERE / "corpus"
