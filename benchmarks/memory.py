"""`python -m benchmarks.memory`: peak resident memory of a streamed merged read of wide rows, at two table sizes.

Eleven runs in one bucket, 22 columns, about 210 bytes a row. The peak is reported over what the process holds after
importing paimon_py.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np

from benchmarks import data
from benchmarks.__main__ import run
from benchmarks.workloads import fresh_table
from paimon_py import Table


def build(root: Path, rows: int) -> Path:
    """A table of `rows` rows: 80 % loaded, ten upserts of 2 % each, half of them on old keys."""
    first = data.wide(np.arange(10), 1)
    path = fresh_table(root / f"wide-{rows}", first.schema, keyed=True)
    table = Table.open(str(path))
    rng = np.random.default_rng(3)
    loaded = rows * 8 // 10
    with table.writer() as writer:
        for start in range(0, loaded, 500_000):
            keys = np.arange(start, min(start + 500_000, loaded))
            writer.write_arrow(data.wide(keys, start))
        table.commit(writer.changes())
    share = rows * 2 // 100
    for number in range(10):
        old = rng.choice(loaded, share // 2, replace=False)
        new = loaded + number * share + np.arange(share - share // 2)
        table.write_arrow(data.wide(np.concatenate([old, new]), 1000 + number))
    return path


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--rows", default="5000000,10000000")
    parser.add_argument("--peers", default="ours,rust")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="paimon-memory-") as directory:
        for rows in map(int, options.rows.split(",")):
            path = build(Path(directory), rows)
            for peer in options.peers.split(","):
                figures = run(peer, "stream", {"table": str(path)})
                if "error" not in figures:
                    figures["over_import_mb"] = round(figures["peak_mb"] - figures["base_mb"])
                print(json.dumps({"rows": rows, "peer": peer, **figures}), flush=True)


if __name__ == "__main__":
    main()
