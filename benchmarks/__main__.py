"""`python -m benchmarks`: run the workloads on every peer, interleaved, and print CPU ratios.

Every sample is a fresh process pinned to one core. Peers take turns within a repeat, so that a noisy machine hurts all.
Figures are CPU seconds (user and system, all threads), medians over the repeats.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks.data import SCHEMA
from benchmarks.environments import MODULES, interpreter
from benchmarks.workloads import Measure, fresh_table, inputs, measures

HERE = Path(__file__).parent


def sample(measure: Measure, peer: str, root: Path, paths: dict, core: int) -> dict:
    """Run one peer once."""
    settings = {**measure.settings, "core": core, "repeats": measure.repeats}
    if peer == "native":
        settings["native"] = True
    scratch = root / "scratch"
    if measure.writes:
        settings["table"] = str(fresh_table(scratch, SCHEMA, measure.keyed))
        settings["raw"] = str(scratch / "raw")
        if measure.base:
            run(peer, "write", {**settings, "inputs": paths[measure.base], "repeats": 0})
    elif "table" in settings and measure.step == "write":
        copy = scratch / "copy" / "db.db" / "t"
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.copytree(settings["table"], copy)
        settings["table"] = str(copy)
    step = measure.extra.get(peer, measure.step)
    return run(peer, step, settings)


def run(peer: str, step: str, settings: dict) -> dict:
    """One child process; its figures."""
    command = [interpreter(peer), str(HERE / "child.py"), MODULES[peer], step, json.dumps(settings)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=HERE.parent)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1][:200] if done.stderr.strip() else "failed"}
    return json.loads(done.stdout.strip().splitlines()[-1])


def figure(measure: Measure, figures: dict) -> float:
    """The number of one sample that the measure is about."""
    if measure.repeats:
        return statistics.median(figures["repeat_cpu"]) / measure.per
    return figures[measure.unit] / measure.per


def compare(measure: Measure, root: Path, paths: dict, repeats: int, peers: set[str], core: int) -> dict:
    """All peers, interleaved; medians, ratios and whether the targets are met."""
    names = [p for p in dict.fromkeys([*measure.peers, *(p for p, _ in measure.targets)]) if p in peers]
    samples: dict[str, list[float]] = {peer: [] for peer in names}
    result: dict = {"name": measure.name, "errors": {}, "peak_mb": {}, "base_mb": {}, "checks": {}}
    for _ in range(repeats):
        for peer in names:
            slow = peer == "pypaimon" and samples[peer] and samples[peer][0] > 5
            if slow or peer in result["errors"]:
                continue
            got = sample(measure, peer, root, paths, core)
            if "error" in got:
                result["errors"][peer] = got["error"]
                continue
            samples[peer].append(figure(measure, got))
            result["peak_mb"][peer] = round(got["peak_mb"])
            result["base_mb"][peer] = round(got["base_mb"])
            result["checks"][peer] = got["check"]
    result["cpu"] = {peer: statistics.median(values) for peer, values in samples.items() if values}
    result["samples"] = samples
    ours = result["cpu"].get("ours")
    result["targets"] = [
        {
            "than": peer,
            "factor": factor,
            "ratio": ours / result["cpu"][peer],
            "met": ours <= factor * result["cpu"][peer],
        }
        for peer, factor in measure.targets
        if ours is not None and peer in result["cpu"]
    ]
    if measure.absolute is not None and ours is not None:
        result["targets"].append(
            {"than": "seconds", "factor": measure.absolute, "ratio": ours, "met": ours <= measure.absolute}
        )
    return result


def row(result: dict) -> str:
    """One line of the report."""
    ours = result["cpu"].get("ours")
    cells = []
    for peer in ("ours", "raw", "rust", "native", "pypaimon"):
        seconds = result["cpu"].get(peer)
        ratio = f" ({ours / seconds:.2f}x)" if ours and seconds and peer != "ours" else ""
        cells.append("-" if seconds is None else f"{seconds:.4f}{ratio}")
    goals = "; ".join(
        f"{'met' if t['met'] else 'MISSED'}: {t['ratio']:.3f} of {t['factor']} {t['than']}" for t in result["targets"]
    )
    return f"| {result['name']} | {' | '.join(cells)} | {goals} |"


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="1.0 is what the names of the workloads say")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--peers", default="ours,raw,rust,native,pypaimon")
    parser.add_argument("--only", default="", help="run measures whose name contains one of these, comma separated")
    parser.add_argument("--commits", default="100,300,1000")
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--output", type=Path, help="write all samples as JSON")
    options = parser.parse_args()
    wanted = [text for text in options.only.split(",") if text]
    commits = tuple(int(text) for text in options.commits.split(",") if text)
    with tempfile.TemporaryDirectory(prefix="paimon-bench-") as directory:
        root = Path(directory)
        paths = inputs(root / "inputs", options.scale)
        results = []
        print(
            "| CPU seconds (ours / peer) | ours | raw | rust | native | pypaimon | target |\n|---|---|---|---|---|---|---|"
        )
        for measure in measures(root / "tables", options.scale, paths, commits):
            if wanted and not any(text in measure.name for text in wanted):
                continue
            result = compare(measure, root, paths, options.repeats, set(options.peers.split(",")), options.core)
            print(row(result), flush=True)
            for peer, error in result["errors"].items():
                print(f"|   {peer}: {error} |")
            results.append(result)
    if options.output:
        about = {"machine": platform.processor() or platform.machine(), "python": platform.python_version(),
                 "time": time.strftime("%Y-%m-%d"), "scale": options.scale, "repeats": options.repeats}  # fmt: skip
        options.output.write_text(json.dumps({"about": about, "results": results}, indent=1))


if __name__ == "__main__":
    main()
