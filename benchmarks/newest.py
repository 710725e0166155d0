"""`python -m benchmarks.newest`: tables with data evolution and BLOBs beside pypaimon 2.1, both in one run, in turns.

- *five of 500 columns*: all rows of five columns of a table of 500;
- *backfill*: a new column from another one, for all rows; `bytes` are those that the process reads and writes, beside
  the size of the column that is filled;
- *lookup*: 1,000 row ids, spread over the table;
- *write* and *read blobs*: values of 1 MB, in batches of 16; `memory` is the peak above the start.

Figures are CPU seconds of a step in a fresh process on one core, medians. `--python` names the interpreter of an
environment with pypaimon 2.1, which is made otherwise; `--rows`, `--blobs` and `--columns` make it large: the goals
are 10 million rows and 10,000 blobs.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.children import HERE, Failed
from benchmarks.environments import interpreter

LIMIT = 0.5
IDS = 1_000
STEPS = ("five of 500 columns", "backfill", "lookup", "write blobs", "read blobs")
_CHILD = {"five of 500 columns": "read_columns", "backfill": "backfill", "lookup": "lookup",
          "write blobs": "write_blobs", "read blobs": "read_blobs"}  # fmt: skip


class Peers:
    """Runs steps of both peers in fresh processes."""

    def __init__(self, python: str) -> None:
        """`python`: the interpreter with pypaimon."""
        self._pythons = {"ours": sys.executable, "pypaimon": python}

    def run(self, peer: str, step: str, settings: dict[str, Any]) -> dict[str, Any]:
        """The figures of one step.

        Raises: Failed
        """
        path = f"{HERE.parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}" if peer == "ours" else ""
        command = [self._pythons[peer], str(HERE / "child.py"), f"newest_{peer}", step, json.dumps(settings)]
        env = {**os.environ, "PYTHONPATH": path}
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=HERE.parent, env=env)
        if done.returncode:
            raise Failed((done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1][:300])
        figures: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
        return figures


class Tables:
    """The tables of a run; steps that write get a copy."""

    def __init__(self, peers: Peers, root: Path, settings: dict[str, Any]) -> None:
        self._peers, self._root, self._settings = peers, root, settings

    def of(self, step: str, peer: str) -> dict[str, Any]:
        """The settings of a step: the table and what is read of it."""
        if "blobs" in step:
            return self._blobs(step, peer)
        if not (self._root / "wide").exists():
            self._peers.run("ours", "make", {**self._settings, "blobs": False, "warehouse": str(self._root / "wide")})
        table = self._root / "wide" / "db.db" / "t"
        if step == "backfill":
            table = self._copied(table)
        rows, columns = self._settings["rows"], self._settings["columns"]
        names = ["id", *(f"c{at * columns // 4}" for at in range(4))]
        step_ids = rows // min(IDS, rows)
        return {"table": str(table), "names": names, "ids": list(range(0, rows, step_ids))[:IDS]}

    def _blobs(self, step: str, peer: str) -> dict[str, Any]:
        given = {"blobs": True, "rows": self._settings["blobs"]}
        home = self._root / ("scratch" if step == "write blobs" else "blobs")
        if step == "write blobs":
            shutil.rmtree(home, ignore_errors=True)
        given["table"] = str(home / "db.db" / "t")
        if not home.exists():
            self._peers.run("ours", "make", {"blobs": True, "warehouse": str(home)})
            if step == "read blobs":
                self._peers.run("ours", "write_blobs", given)
        return given

    def _copied(self, table: Path) -> Path:
        shutil.rmtree(self._root / "scratch", ignore_errors=True)
        return Path(shutil.copytree(table, self._root / "scratch" / "db.db" / "t"))


def column_bytes(table: str) -> tuple[int, list[list[str] | None]]:
    """The size of the files that the last commit added, and the columns in them."""
    from paimon_py import Table

    snapshot = Table.open(table).snapshot()
    assert snapshot is not None
    files = [entry.file for manifest in snapshot.manifests() for entry in manifest.entries()]
    newest = max(file.max_sequence for file in files)
    new = [file for file in files if file.max_sequence == newest]
    return sum(file.size_bytes for file in new), [list(file.write_columns or ()) or None for file in new]


def measure(step: str, peers: Peers, tables: Tables, repeats: int) -> dict[str, Any]:
    """One line: medians of both, in turns."""
    samples: dict[str, list[dict[str, Any]]] = {"ours": [], "pypaimon": []}
    written: dict[str, Any] = {}
    for number in range(repeats):
        for peer in list(samples)[:: -1 if number % 2 else 1]:
            settings = tables.of(step, peer)
            samples[peer].append(peers.run(peer, _CHILD[step], settings))
            if step == "backfill" and peer not in written:
                written[peer] = column_bytes(settings["table"])
    checks = {peer: found[0]["check"] for peer, found in samples.items()}
    if checks["ours"] != checks["pypaimon"]:
        raise Failed(f"{step}: other rows: {checks}")
    cpu = {peer: statistics.median(one["cpu"] for one in found) for peer, found in samples.items()}
    result: dict[str, Any] = {"name": step, "cpu": cpu, "ratio": cpu["ours"] / cpu["pypaimon"]}
    for name in ("read_mb", "written_mb"):
        result[name] = {peer: round(max(one[name] for one in found), 1) for peer, found in samples.items()}
    peak = {peer: round(max(one["peak_mb"] - one["base_mb"] for one in found)) for peer, found in samples.items()}
    return result | {"memory_mb": peak, "new_files": written}


def row(result: dict[str, Any]) -> str:
    """One line of the report."""
    cells = [f"{result['cpu'][peer]:.2f} s, {result['memory_mb'][peer]} MB" for peer in ("ours", "pypaimon")]
    read, written = result["read_mb"], result["written_mb"]
    moved = "; ".join(f"{peer} {read[peer]} / {written[peer]}" for peer in ("ours", "pypaimon"))
    verdict = "met" if result["ratio"] <= LIMIT else "MISSED"
    return f"| {result['name']} | {' | '.join(cells)} | {result['ratio']:.2f}x {verdict} | {moved} |"


def main(arguments: list[str] | None = None) -> list[dict[str, Any]]:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.newest", description=__doc__)
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--columns", type=int, default=500)
    parser.add_argument("--blobs", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="", help="steps whose name contains one of these, comma separated")
    parser.add_argument("--python", help="an interpreter with pypaimon 2.1")
    parser.add_argument("--output", type=Path)
    chosen = parser.parse_args(arguments)
    peers, results = Peers(chosen.python or interpreter("pypaimon")), []
    with tempfile.TemporaryDirectory() as root:
        tables = Tables(peers, Path(root), {"rows": chosen.rows, "columns": chosen.columns, "blobs": chosen.blobs})
        print("| step | ours | pypaimon | ratio | MB read / written |\n|---|---|---|---|---|", flush=True)
        for step in STEPS:
            if not chosen.only or any(part in step for part in chosen.only.split(",")):
                results.append(measure(step, peers, tables, chosen.repeats))
                print(row(results[-1]), flush=True)
    if chosen.output is not None:
        chosen.output.write_text(json.dumps(results, indent=1), encoding="utf-8")
    return results


if __name__ == "__main__":
    main()
