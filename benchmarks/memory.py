"""`python -m benchmarks.memory`: peak resident memory of a streamed merged read of wide rows, at two table sizes.

Eleven runs in one bucket, 22 columns, about 210 bytes a row. The peak is over what the process holds after importing
the peer.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.__main__ import Failed, machine, run
from benchmarks.workspace import Workspace

LIMIT_MB = 500


def main(arguments: list[str] | None = None) -> list[dict[str, Any]]:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--rows", default="5000000,10000000")
    parser.add_argument("--peers", default="ours,rust")
    parser.add_argument("--work", type=Path, help="keep the tables here, and use what is there")
    parser.add_argument("--output", type=Path, help="write the figures as JSON")
    options = parser.parse_args(arguments)
    results = []
    with tempfile.TemporaryDirectory(prefix="paimon-memory-") as directory:
        space = Workspace(options.work or Path(directory), 1.0)
        print("| wide rows | peer | peak MB over import | CPU s | rows |\n|---|---|---|---|---|")
        for rows in map(int, options.rows.split(",")):
            for peer in options.peers.split(","):
                try:
                    got = run(peer, "stream", {"table": str(space.wide(rows))})
                except Failed as error:
                    print(f"| {rows} | {peer} | {error} |", flush=True)
                    continue
                over = round(got["peak_mb"] - got["base_mb"])
                print(f"| {rows} | {peer} | {over} | {got['cpu']:.2f} | {got['check']} |", flush=True)
                results.append({"rows": rows, "peer": peer, "over_import_mb": over, **got})
    if options.output is not None:
        options.output.write_text(json.dumps({"about": machine(), "results": results}, indent=1) + "\n")
    return results


if __name__ == "__main__":
    main()
