"""`python -m benchmarks`: run the workloads on every peer, in turns, and print CPU ratios.

Every sample is a fresh process pinned to one core. Peers take turns within a repeat, so that a noisy machine hurts all.
Figures are CPU seconds (user and system, all threads), medians over the repeats. What comes out is compared: a peer
whose rows are not those of the others is shown as WRONG.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.children import Failed, run
from benchmarks.data import SCHEMA
from benchmarks.environments import versions
from benchmarks.workloads import Measure, measures
from benchmarks.workspace import Workspace, fresh_table
from paimon_py import PaimonError

SLOW_SECONDS = 5.0
SLOW_FACTOR = 5
"""A peer that takes longer than so many seconds and so many times as long as ours is sampled once."""


def sample(measure: Measure, peer: str, space: Workspace, core: int, *, first: bool = True) -> dict[str, Any]:
    """Run one peer once; of what it wrote the `first` time, `check` is what is in the files."""
    settings: dict[str, Any] = {"core": core, "repeats": measure.repeats}
    if measure.keyed:
        settings["keyed"] = True
    try:
        settings |= {**measure.settings(), **measure.own.get(peer, dict)()}
    except PaimonError as error:
        raise Failed(str(error)) from error
    step = measure.steps.get(peer, measure.step)
    if measure.inputs is None and measure.copied:
        return sample_of_copy(peer, step, settings, space, first=first)
    if measure.inputs is None:
        return run(peer, step, settings)
    scratch = space.root / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    if measure.copied:
        shutil.copytree(settings["table"], scratch / "db.db" / "t")
        settings["table"] = str(scratch / "db.db" / "t")
    else:
        fresh = fresh_table(scratch, SCHEMA, keyed=measure.keyed, options=settings.get("options"))
        settings |= {"table": str(fresh), "raw": str(scratch / "raw")}
    if measure.base is not None:
        run(peer, "write", {**settings, "inputs": space.input(measure.base), "repeats": 0})
    figures = run(peer, step, {**settings, "inputs": space.input(measure.inputs)})
    written = {"keyed": measure.keyed, **{name: settings[name] for name in ("table", "raw") if name in settings}}
    figures["check"] = run(_reader(peer), "read", written)["check"] if first else None
    shutil.rmtree(scratch)
    return figures


def sample_of_copy(
    peer: str, step: str, settings: dict[str, Any], space: Workspace, *, first: bool
) -> dict[str, Any]:
    """One step that changes a table and needs no input; `check` is what is in the table, or in raw's files, then."""
    scratch = space.root / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    for copy in ("db.db", "warm.db")[: 2 if peer == "java" else 1]:
        shutil.copytree(settings["table"], scratch / copy / "t")
    settings |= {"table": str(scratch / "db.db" / "t"), "raw": str(scratch / "raw")}
    figures = run(peer, step, settings)
    read = {name: settings[name] for name in ("table", "keyed") if name in settings}
    if peer == "raw":
        read["raw"] = settings["raw"]
    figures["check"] = run(_reader(peer), "read", read)["check"] if first else None
    shutil.rmtree(scratch)
    return figures


def _reader(peer: str) -> str:
    """Who looks at what a peer wrote."""
    return peer if peer in ("raw", "delta") else "ours"


def figure(measure: Measure, figures: dict[str, Any]) -> float:
    """The number of one sample that the measure is about."""
    seconds = statistics.median(figures["repeat_cpu"]) if measure.repeats else figures[measure.unit]
    return seconds / measure.per


def compare(measure: Measure, space: Workspace, repeats: int, peers: Iterable[str], core: int) -> dict[str, Any]:
    """All peers in turns: medians, and what is wrong."""
    names = [peer for peer in measure.peers if peer in peers]
    samples: dict[str, list[dict[str, Any]]] = {peer: [] for peer in names}
    errors: dict[str, str] = {}
    for number in range(repeats):
        for peer in names[number % len(names) :] + names[: number % len(names)]:
            if peer in errors or _is_slow(measure, peer, samples):
                continue
            try:
                samples[peer].append(sample(measure, peer, space, core, first=not samples[peer]))
            except Failed as error:
                errors[peer] = str(error)
    found = {peer: [figure(measure, each) for each in each_peer] for peer, each_peer in samples.items()}
    cpu = {peer: statistics.median(figures) for peer, figures in found.items() if figures}
    return {
        "name": measure.name,
        "cpu": cpu,
        "errors": errors | _wrong(measure, samples),
        "targets": _verdicts(measure, cpu),
        "samples": found,
        "peak_over_base_mb": {
            peer: round(max(each["peak_mb"] - each["base_mb"] for each in figures))
            for peer, figures in samples.items()
            if figures
        },
        "check": next((each["check"] for figures in samples.values() for each in figures), None),
    }


def _is_slow(measure: Measure, peer: str, samples: dict[str, list[dict[str, Any]]]) -> bool:
    if not samples[peer] or not samples.get("ours") or peer in ("ours", "raw"):
        return False
    theirs, ours = figure(measure, samples[peer][0]), figure(measure, samples["ours"][0])
    return samples[peer][0]["cpu"] > SLOW_SECONDS and theirs > SLOW_FACTOR * ours


def _wrong(measure: Measure, samples: dict[str, list[dict[str, Any]]]) -> dict[str, str]:
    """Peers whose results differ from ours (from each other within one peer, too)."""
    if measure.step not in ("read", "write", "compact", "change", "merge") or measure.steps or not measure.alike:
        return {}
    every = {peer: [each["check"] for each in figures] for peer, figures in samples.items()}
    known = {peer: [check for check in checks if check is not None] for peer, checks in every.items()}
    seen = {peer: checks for peer, checks in known.items() if checks}
    if not seen:
        return {}
    expected = seen.get("ours", next(iter(seen.values())))[0]
    return {
        peer: f"WRONG rows: {check}, not {expected}"
        for peer, checks in seen.items()
        for check in checks
        if check != expected
    }


def _verdicts(measure: Measure, cpu: dict[str, float]) -> list[dict[str, Any]]:
    if "ours" not in cpu:
        return []
    ours = cpu["ours"]
    bounds = [(peer, factor, ours / cpu[peer]) for peer, factor in measure.targets if peer in cpu]
    if measure.absolute is not None:
        bounds.append(("seconds", measure.absolute, ours))
    return [{"than": peer, "limit": limit, "is": value, "met": value <= limit} for peer, limit, value in bounds]


def row(result: dict[str, Any], peers: list[str]) -> str:
    """One line of the report."""
    ours = result["cpu"].get("ours")
    cells = []
    for peer in peers:
        seconds = result["cpu"].get(peer)
        ratio = f" ({ours / seconds:.2f}x)" if ours and seconds and peer != "ours" else ""
        shown = "-" if seconds is None else f"{seconds:.4f}{ratio}"
        cells.append(f"{shown} WRONG" if "WRONG" in result["errors"].get(peer, "") else shown)
    goals = [
        f"{'met' if goal['met'] else 'MISSED'}: {goal['is']:.3g} of {goal['limit']:.3g}"
        + (" s" if goal["than"] == "seconds" else f"x {goal['than']}")
        for goal in result["targets"]
    ]
    return f"| {result['name']} | {' | '.join(cells)} | {'; '.join(goals)} |"


def machine() -> dict[str, Any]:
    """Where and when the figures were taken."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    load = list(os.getloadavg()) if hasattr(os, "getloadavg") else None
    return {"cpu": model, "cores": os.cpu_count(), "system": platform.platform(), "load": load,
            "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()), "command": " ".join(sys.argv[1:])}  # fmt: skip


def main(arguments: list[str] | None = None) -> list[dict[str, Any]]:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="1.0 is what the names of the workloads say")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--peers", default="ours,raw,plain,delta,java,rust,native,pypaimon")
    parser.add_argument("--only", default="", help="run measures whose name contains one of these, comma separated")
    parser.add_argument("--commits", default="100,300,1000")
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--work", type=Path, help="keep inputs and tables here, and use what is there")
    parser.add_argument("--output", type=Path, help="write all samples as JSON")
    options = parser.parse_args(arguments)
    wanted = [text for text in options.only.split(",") if text]
    commits = [int(text) for text in options.commits.split(",") if text]
    peers = options.peers.split(",")
    about = {**machine(), "scale": options.scale, "repeats": options.repeats,
             "versions": {peer: versions(peer) for peer in peers}}  # fmt: skip
    results = []
    with tempfile.TemporaryDirectory(prefix="paimon-bench-") as made, taken(options.work or Path(made)) as work:
        space = Workspace(work / f"scale-{options.scale}", options.scale)
        print(f"| CPU seconds (ours / peer) | {' | '.join(peers)} | target |\n|---|{'---|' * len(peers)}---|")
        for measure in measures(space, commits):
            if wanted and not any(text in measure.name for text in wanted):
                continue
            result = compare(measure, space, options.repeats, peers, options.core)
            print(row(result, peers), flush=True)
            for peer, error in result["errors"].items():
                print(f"| ({peer}: {error}) |", flush=True)
            results.append(result)
            if options.output is not None:
                store(options.output, about, results)
    return results


@contextmanager
def taken(work: Path) -> Iterator[Path]:
    """A work directory for one run alone: two runs in one would spoil the tables of both."""
    work.mkdir(parents=True, exist_ok=True)
    with (work / "in-use").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SystemExit(f"another run works in {work}: wait for its end, or name another with --work") from error
        yield work


def store(path: Path, about: dict[str, Any], results: list[dict[str, Any]]) -> None:
    """Write what is known so far, in one step: a run that is stopped keeps its rows."""
    about["load_after"] = list(os.getloadavg()) if hasattr(os, "getloadavg") else None
    unfinished = path.with_name(f"{path.name}.unfinished")
    unfinished.write_text(json.dumps({"about": about, "results": results}, indent=1) + "\n")
    unfinished.replace(path)


if __name__ == "__main__":
    main()
