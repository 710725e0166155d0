"""Plant bugs in a copy of the package, and run tests there. The checkout is never touched.

A copy stands in a directory beside links to everything else of the checkout, so that tests run in it as they do here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from planted.plants import Plant

ROOT = Path(__file__).parents[2]
PACKAGE = "paimon_py"
SECONDS_MAX = 240


class StalePlantError(Exception):
    """The snippet of a plant is not in the package exactly once."""


def sources(package: Path) -> dict[Path, str]:
    """The text of every module."""
    return {path: path.read_text() for path in sorted(package.rglob("*.py"))}


def planted(plant: Plant, texts: dict[Path, str]) -> tuple[Path, str]:
    """The module that a plant changes, and its text with the bug.

    Raises: StalePlantError
    """
    found = [(path, text) for path, text in texts.items() for _ in range(text.count(plant.old))]
    if len(found) != 1:
        places = ", ".join(sorted({path.name for path, _ in found})) or "nowhere"
        raise StalePlantError(f"plant {plant.name!r}: its snippet is found {len(found)} times ({places}):\n{plant.old}")
    path, text = found[0]
    return path, text.replace(plant.old, plant.new)


def copied(directory: Path) -> Path:
    """A copy of the package in a new checkout of links, below `directory`; the root of that checkout."""
    root = directory / "main"
    root.mkdir()
    for entry in ROOT.iterdir():
        if entry.name == PACKAGE:
            shutil.copytree(entry, root / PACKAGE)
        elif entry.name != ".git":
            (root / entry.name).symlink_to(entry)
    shared = ROOT.parent / "shared"
    if shared.exists():
        (directory / "shared").symlink_to(shared)
    return root


def run_tests(root: Path, tests: Iterable[str], *, seconds: int = SECONDS_MAX) -> subprocess.CompletedProcess[str]:
    """Run tests of a checkout until one fails; the return code is pytest's, 1 if a test has failed.

    Raises: subprocess.TimeoutExpired
    """
    arguments = ["-x", "-p", "no:cacheprovider", "--durations=0", f"--timeout={seconds}"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *arguments, *(f"tests/{test}" for test in tests)],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=seconds + 60,
    )
