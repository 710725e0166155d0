"""Runs jobs in processes of their own; a process that dies is a finding, and the next one goes on behind its input."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from fuzz import limits
from fuzz.worker import PROGRESS

ROOT = Path(__file__).parents[2]
_FRAME = re.compile(r'File "([^"]*/paimon_py/[^"]+)", line \d+ in (\w+)')


class Job(NamedTuple):
    """Inputs of a target: `count` numbers from `first`."""

    target: str
    first: int
    count: int
    step: int = 1


class Finding(NamedTuple):
    """An input whose outcome is neither right rows nor an error of ours. `kind` is the error's name, or what happened."""

    target: str
    number: int
    kind: str
    where: str
    words: str

    def __str__(self) -> str:
        return f"{self.target} {self.number}: {self.kind} at {self.where}: {self.words}"


class Report:
    """What came of many inputs."""

    def __init__(self) -> None:
        self.inputs: Counter[str] = Counter()
        self.outcomes: dict[str, Counter[str]] = {}
        self.findings: list[Finding] = []
        self.seconds: dict[str, float] = {}
        self.growth: dict[str, int] = {}

    def add(self, line: str) -> None:
        """Take in what a worker wrote of one input."""
        name, number, outcome, where, words, seconds, growth = json.loads(line)
        self.inputs[name] += 1
        self.outcomes.setdefault(name, Counter())["wrong" if where else outcome] += 1
        if where:
            self.findings.append(Finding(name, number, outcome, where, words))
        self.seconds[name] = max(self.seconds.get(name, 0), seconds)
        self.growth[name] = max(self.growth.get(name, 0), growth)

    def died(self, name: str, number: int, kind: str, where: str, words: str) -> None:
        """Take in an input that ended its process."""
        self.inputs[name] += 1
        self.outcomes.setdefault(name, Counter())["wrong"] += 1
        self.findings.append(Finding(name, number, kind, where, words))

    def undetected(self, name: str) -> float:
        """The share of damaged inputs that gave another answer without an error."""
        outcomes = self.outcomes.get(name, Counter())
        damaged = sum(outcomes.values()) - outcomes["same bytes"]
        return outcomes["undetected"] / damaged if damaged else 0.0

    def merge(self, other: Report) -> None:
        """Take in another report."""
        self.inputs.update(other.inputs)
        for name, outcomes in other.outcomes.items():
            self.outcomes.setdefault(name, Counter()).update(outcomes)
        self.findings += other.findings
        for mine, theirs in ((self.seconds, other.seconds), (self.growth, other.growth)):
            for name, value in theirs.items():
                mine[name] = max(mine.get(name, 0), value)

    def __str__(self) -> str:
        lines = [f"{sum(self.inputs.values())} inputs, at most {max(self.seconds.values(), default=0):.2f} s and {max(self.growth.values(), default=0) >> 20} MiB"]
        for name in sorted(self.inputs):
            outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(self.outcomes[name].items()))
            lines.append(f"{name:26} {outcomes}; {self.seconds.get(name, 0):.2f} s, {self.growth.get(name, 0) >> 20} MiB; undetected {self.undetected(name):.4f}")
        return "\n".join(lines)


def run(jobs: list[Job], workers: int = 2) -> Report:
    """Run jobs in so many processes at a time."""
    shares = [share for share in (jobs[number::workers] for number in range(workers)) if share]
    with tempfile.TemporaryDirectory() as place:
        runs = [_Run(share, Path(place) / str(number)) for number, share in enumerate(shares)]
        going = runs
        while going:
            going = [each for each in going if each.advance()]
    report = Report()
    for each in runs:
        report.merge(each.report)
    return report


class _Run:
    """The jobs of one process, and of those that go on when it dies."""

    def __init__(self, jobs: list[Job], place: Path) -> None:
        self.jobs, self.place, self.report = jobs, place, Report()
        place.mkdir()
        self._process = None
        self._seen, self._seen_at = None, 0.0

    def advance(self) -> bool:
        """Wait a moment; False when all is done."""
        if self._process is None:
            if not self.jobs:
                return False
            self._start()
        try:
            code = self._process.wait(0.2)
        except subprocess.TimeoutExpired:
            if not self._hangs():
                return True
            self._process.kill()
            self._process.wait()
            code = "hang"
        self._process = None
        self._take(code)
        return bool(self.jobs)

    def _start(self) -> None:
        for name in ("progress", "results"):
            (self.place / name).write_bytes(b"")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(str(ROOT / part) for part in (".", "tests", "tests/golden")), "MALLOC_ARENA_MAX": "2"}
        with (self.place / "jobs").open("w") as out:
            json.dump(self.jobs, out)
        with (self.place / "jobs").open() as given, (self.place / "errors").open("w") as errors:
            command = [sys.executable, "-m", "fuzz.worker", str(self.place / "progress"), str(self.place / "results")]
            self._process = subprocess.Popen(command, stdin=given, stdout=errors, stderr=errors, cwd=ROOT, env=environment)
        self._seen, self._seen_at = None, time.monotonic()

    def _hangs(self) -> bool:
        now = (self.place / "progress").read_bytes()
        if now != self._seen:
            self._seen, self._seen_at = now, time.monotonic()
        return time.monotonic() - self._seen_at > limits.HANG_SECONDS

    def _take(self, code) -> None:
        """Add what a process wrote; if it did not finish, leave the jobs that are left behind its last input."""
        for line in (self.place / "results").read_text().splitlines():
            self.report.add(line)
        if code == 0:
            self.jobs = []
            return
        errors = (self.place / "errors").read_text(errors="replace")
        noted = (self.place / "progress").read_bytes()
        if len(noted) < PROGRESS.size:
            raise RuntimeError(f"a worker did not begin:\n{errors[-3000:]}")
        index, number = PROGRESS.unpack(noted)
        job = self.jobs[index]
        if code != 3:
            frame = _FRAME.search(errors)
            where = f"{frame[1].rpartition('/paimon_py/')[2]}:{frame[2]}" if frame else "?"
            kind = code if isinstance(code, str) else "abort" if code < 0 else f"exit {code}"
            self.report.died(job.target, number, kind, where, errors[-200:] if code == 1 else f"code {code}")
        done = (number - job.first) // job.step + 1
        rest = [Job(job.target, number + job.step, job.count - done, job.step)] if done < job.count else []
        self.jobs = rest + list(self.jobs[index + 1 :])
