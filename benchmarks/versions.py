"""`python -m benchmarks.versions OLD`: time two commits of this project side by side.

Both are checked out beside one another. In every repeat each step runs once with the old one and once with the new one,
in turns, in fresh processes pinned to one core. Figures are CPU seconds of the step alone; a ratio is the median of the
ratios of the pairs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.version_steps import STEPS

ROOT = Path(__file__).parents[1]
NEEDS_TABLE = ("open_table", "plan", "read")
SCALE = 200_000
"""Rows of a load."""


def run_step(code: Path, step: str, directory: Path, scale: int) -> float:
    """CPU seconds of a step with the package of a checkout."""
    command = [sys.executable, str(ROOT / "benchmarks" / "version_steps.py"), step, str(directory), str(scale)]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(code)}, cwd=directory, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def pairs_of(step: str, codes: Sequence[Path], scratch: Path, repeats: int, scale: int) -> list[tuple[float, float]]:
    """Seconds of the old and the new code, in turns; the one that begins changes with every pair."""
    found = []
    for repeat in range(repeats):
        seconds = {}
        for code in codes if repeat % 2 else reversed(codes):
            directory = scratch / "warehouse"
            if step not in NEEDS_TABLE:
                directory = scratch / "fresh"
                shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(exist_ok=True)
            seconds[code] = run_step(code, step, directory, scale)
        found.append((seconds[codes[0]], seconds[codes[1]]))
    return found


def compare(codes: Sequence[Path], steps: Sequence[str], repeats: int, scale: int) -> list[str]:
    """A line for each step: medians, and the median, least and largest ratio of the pairs."""
    lines = []
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        (scratch / "warehouse").mkdir()
        run_step(codes[0], "prepare", scratch / "warehouse", scale)
        for step in steps:
            pairs = pairs_of(step, codes, scratch, repeats, scale)
            ratios = [new / old for old, new in pairs]
            old, new = (statistics.median(side) for side in zip(*pairs, strict=True))
            middle = statistics.median(ratios)
            lines.append(f"| {step} | {old:.3f} | {new:.3f} | {middle:.2f}x | {min(ratios):.2f}-{max(ratios):.2f} |")
            print(lines[-1], flush=True)
    return lines


def checkout(commit: str, directory: Path) -> Path:
    """The files of a commit below a directory."""
    archive = subprocess.run(["git", "archive", commit, "paimon_py"], cwd=ROOT, capture_output=True, check=True)
    directory.mkdir()
    subprocess.run(["tar", "-x"], cwd=directory, input=archive.stdout, check=True)
    return directory


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare two commits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", help="the commit to compare with")
    parser.add_argument("new", nargs="?", default="HEAD")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--scale", type=int, default=SCALE, help="rows of a load")
    parser.add_argument("--only", choices=STEPS, action="append")
    given = parser.parse_args(arguments)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as name:
        codes = [checkout(commit, Path(name) / side) for side, commit in (("old", given.old), ("new", given.new))]
        print("| | old s | new s | new / old | all pairs |\n|---|---|---|---|---|")
        compare(codes, given.only or list(STEPS), given.repeats, given.scale)
    return 0


if __name__ == "__main__":
    sys.exit(main())
