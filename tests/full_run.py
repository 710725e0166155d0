"""Run the full suites shard by shard, and remember what was green at which commit.

    python tests/full_run.py --minutes 50            what is not green yet at this commit, for so long
    python tests/full_run.py --list                  what is known of this commit
    python tests/full_run.py interop lives           only shards with one of the words in their names
    python tests/full_run.py -m "not full"           the bounded run, in shards too

A shard is a test file, or some of its tests where it has many. The ledger is a file of JSON lines; nothing is ever taken
out of it. Whoever stops the run loses the shard that is running, and the next call goes on there.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
LEDGER = ROOT / ".cache" / "full-ledger.jsonl"
TESTS_MAX = 25
"""Tests in a shard."""
MINUTES_MAX = 60
"""For one shard."""
GREEN, RED, SLOW = "green", "red", "too slow"


class Shard(NamedTuple):
    """Some tests of a file, as pytest names them."""

    name: str
    tests: tuple[str, ...]


class Entry(NamedTuple):
    """A line of the ledger: what became of a shard at a commit."""

    commit: str
    shard: str
    outcome: str
    tests: int
    seconds: float
    date: str


def shards_of(tests: Iterable[str], most: int = TESTS_MAX) -> list[Shard]:
    """Tests by file in the order of their names, files with many tests in parts of at most `most`."""
    files: dict[str, list[str]] = {}
    for test in tests:
        files.setdefault(test.partition("::")[0], []).append(test)
    shards = []
    for file, own in sorted(files.items()):
        parts = [tuple(own[start : start + most]) for start in range(0, len(own), most)]
        shards += [Shard(f"{file} part{n}" if len(parts) > 1 else file, part) for n, part in enumerate(parts)]
    return shards


def read_ledger(path: Path) -> list[Entry]:
    """All lines; one that was cut off when the machine stopped is passed over."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            found.append(Entry(**json.loads(line)))
        except ValueError:
            continue
    return found


def latest(entries: Iterable[Entry], commit: str) -> dict[str, Entry]:
    """The last word on every shard at a commit."""
    return {entry.shard: entry for entry in entries if entry.commit == commit}


def run_shards(
    shards: Sequence[Shard],
    commit: str,
    ledger: Path,
    run: Callable[[Shard], str],
    *,
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Run shards that are not green yet, those that were never run first, until the time is over."""
    known = latest(read_ledger(ledger), commit)
    began = clock()
    for shard in sorted(shards, key=lambda shard: shard.name in known):
        if shard.name in known and known[shard.name].outcome == GREEN:
            continue
        if clock() - began >= seconds:
            return
        started = clock()
        outcome = run(shard)
        date = datetime.now(timezone.utc).isoformat(timespec="seconds")
        entry = Entry(commit, shard.name, outcome, len(shard.tests), round(clock() - started, 1), date)
        ledger.parent.mkdir(parents=True, exist_ok=True)
        with ledger.open("a") as lines:
            lines.write(json.dumps(entry._asdict()) + "\n")
        print(f"{entry.outcome:8} {entry.seconds:7.1f} s  {shard.name}", flush=True)


def summary(shards: Sequence[Shard], commit: str, entries: Iterable[Entry]) -> tuple[str, bool]:
    """What is known of a commit, and whether all of it is green."""
    known = latest(entries, commit)
    outcomes = {shard.name: known[shard.name].outcome if shard.name in known else "open" for shard in shards}
    counts = {word: sum(found == word for found in outcomes.values()) for word in (GREEN, RED, SLOW, "open")}
    lines = [f"{outcome:8} {name}" for name, outcome in outcomes.items() if outcome != GREEN]
    lines.append(f"{commit[:12]}: " + ", ".join(f"{count} {word}" for word, count in counts.items()))
    return "\n".join(lines), counts[GREEN] == len(shards)


def _pytest(*arguments: str, seconds: float | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--show-capture=no", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds)


def _run(shard: Shard, mark: str) -> str:
    try:
        done = _pytest("-m", mark, *shard.tests, seconds=60 * MINUTES_MAX)
    except subprocess.TimeoutExpired:
        return SLOW
    if done.returncode:
        print(done.stdout[-6000:], done.stderr[-2000:])
    return RED if done.returncode else GREEN


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="only shards with one of these in their names")
    parser.add_argument("-m", dest="mark", default="full", help="which tests, as for pytest (full)")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no shard after so long")
    parser.add_argument("--list", action="store_true", help="run nothing")
    parser.add_argument("--ledger", type=Path, default=LEDGER)
    given = parser.parse_args()
    if _git("status", "--porcelain"):
        parser.error("there are changes that no commit holds: the ledger speaks of commits")
    found = _pytest("--collect-only", "-m", given.mark, "tests")
    if found.returncode not in (0, 5):
        parser.error(f"tests cannot be collected:\n{found.stdout}{found.stderr}")
    tests = [line for line in found.stdout.splitlines() if "::" in line]
    shards = [shard for shard in shards_of(tests) if any(word in shard.name for word in given.words or [""])]
    commit = _git("rev-parse", "HEAD")
    if not given.list:
        run_shards(shards, commit, given.ledger, lambda shard: _run(shard, given.mark), seconds=60 * given.minutes)
    text, is_green = summary(shards, commit, read_ledger(given.ledger))
    print(text)
    return 0 if is_green else 1


if __name__ == "__main__":
    sys.exit(main())
