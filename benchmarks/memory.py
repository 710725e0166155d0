"""`python -m benchmarks.memory`: peak resident memory over what the process holds after importing the peer.

Wide rows, if nothing else is said: 22 columns, about 210 bytes a row.

- `stream`: a streamed merged read of eleven runs in one bucket, at two table sizes.
- `diff`: every key of the last state of that table beside the first one, merged with each other, at two table sizes.
- `full-step`: the first step of a stream of that table, all rows merged, at two table sizes.
- `step`: the step of a stream that holds one commit of 1 M and of 5 M rows, from the changelog of their input.
- `load`: one writer with default options takes 20 M rows in scattered order, in batches of 65,536, made as it goes.
- `moves`: 5 M rows go to a table whose keys move between partitions; a second writer moves every tenth of them.
- `compact`: a full compaction of 50 runs of 100,000 rows, every other row of which is updated by the next run.
- `merge`: a hundredth as many rows, half of them new, into ten files of the narrow rows of `data.py` without a key.
- `change`: 1 % of the rows of these files are updated. Both write all files anew; at two table sizes.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import data
from benchmarks.__main__ import Failed, machine, run, store
from benchmarks.workspace import Workspace, fresh_table

LIMITS_MB = {
    "stream": 500, "diff": 500, "full-step": 300, "step": 300, "load": 600, "moves": 700, "compact": 600, "merge": 200,
    "change": 200,
}  # fmt: skip
RUNS = 50
BATCH_ROWS = 65_536
_TWO_SIZES = (5_000_000, 10_000_000)
DEFAULT_ROWS = {
    "stream": _TWO_SIZES, "diff": _TWO_SIZES, "full-step": _TWO_SIZES, "step": (1_000_000, 5_000_000),
    "load": (20_000_000,), "moves": (5_000_000,), "compact": (5_000_000,), "merge": _TWO_SIZES, "change": _TWO_SIZES,
}  # fmt: skip


def settings_of(what: str, rows: int, space: Workspace) -> dict[str, Any]:
    """What a child is given; tables that it changes are copies."""
    scratch = space.root / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    if what in ("stream", "diff"):
        return {"table": str(space.wide(rows))}
    if what == "full-step":
        return {"table": str(space.wide(rows)), "from": "full"}
    if what == "step":
        return {"table": str(space.told(rows)), "from": "earliest"}
    if what == "load":
        table = fresh_table(scratch, data.wide(np.arange(1), 1).schema, keyed=True)
        return {"table": str(table), "rows": rows, "batch_rows": BATCH_ROWS}
    if what in ("merge", "change"):
        ten = Workspace(space.root / f"ten-{rows}", rows / 10_000_000)
        shutil.copytree(ten.appended(), scratch / "db.db" / "t")
        where = {"where": ["a", 49 * 2**40 // 50, 2**40], "set": {"b": "0.5"}}
        asked = {"inputs": ten.input("everywhere")} if what == "merge" else where
        return {"table": str(scratch / "db.db" / "t"), **asked}
    if what == "moves":
        schema = data.wide(np.arange(1), 1).schema.append(pa.field("p", pa.int32()))
        options = {"bucket": "-1"}
        table = fresh_table(scratch, schema, keyed=True, options=options, partition_by=("p",))
        return {"table": str(table), "rows": rows, "batch_rows": BATCH_ROWS}
    shutil.copytree(space.runs(RUNS, rows // RUNS), scratch / "db.db" / "t")
    return {"table": str(scratch / "db.db" / "t")}


def main(arguments: list[str] | None = None) -> list[dict[str, Any]]:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--what", default="stream,diff,full-step,step,load,moves,compact,merge,change")
    parser.add_argument("--rows", default="", help="numbers of rows instead of the usual ones")
    parser.add_argument("--peers", default="ours,rust")
    parser.add_argument("--work", type=Path, help="keep the tables here, and use what is there")
    parser.add_argument("--output", type=Path, help="write the figures as JSON")
    options = parser.parse_args(arguments)
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="paimon-memory-") as directory:
        space = Workspace(options.work or Path(directory), 1.0)
        print("| what | rows | peer | peak MB over import | limit | CPU s | rows |\n|---|---|---|---|---|---|---|")
        for what in options.what.split(","):
            counts = [int(text) for text in options.rows.split(",") if text] or DEFAULT_ROWS[what]
            peers = options.peers.split(",") if what == "stream" else ["ours"]
            for rows, peer in ((rows, peer) for rows in counts for peer in peers):
                try:
                    got = run(peer, what.replace("full-", ""), settings_of(what, rows, space))
                except Failed as error:
                    print(f"| {what} | {rows} | {peer} | {error} |", flush=True)
                    continue
                over, limit = round(got["peak_mb"] - got["base_mb"]), LIMITS_MB[what]
                shown = (what, rows, peer, over, limit, f"{got['cpu']:.2f}", got["check"])
                print(f"| {' | '.join(map(str, shown))} |", flush=True)
                about = {"what": what, "rows": rows, "peer": peer, "over_import_mb": over, "limit_mb": limit}
                results.append({**about, **got})
                if options.output is not None:
                    store(options.output, machine(), results)
    return results


if __name__ == "__main__":
    main()
