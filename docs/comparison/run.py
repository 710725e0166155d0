"""Run the programs of every peer and write the table of `docs/comparison.md`: `python docs/comparison/run.py`.

Each peer runs in a virtual environment of its own, made on first use, as for the benchmarks.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT)]

from features import FEATURES

from benchmarks.environments import interpreter

PAGE = HERE.parent / "comparison.md"
PROGRAMS = {
    "paimon_py": ("ours.py", "ours"),
    "pypaimon": ("pypaimon_programs.py", "pypaimon"),
    "deltalake": ("deltalake_programs.py", "delta"),
    "pyiceberg": ("pyiceberg_programs.py", "iceberg"),
}
BEGIN, END = "<!-- made by docs/comparison/run.py -->\n", "<!-- end -->\n"


def answers(peer: str) -> dict[str, str]:
    """What the programs of a peer saw.

    Raises: subprocess.CalledProcessError, RuntimeError if one failed.
    """
    file, environment = PROGRAMS[peer]
    settings = {**os.environ, "PYTHONPATH": str(ROOT) if peer == "paimon_py" else "", "PYTHONWARNINGS": "ignore"}
    command = [interpreter(environment), str(HERE / file)]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    if failed := {name: answer for name, answer in found.items() if answer.startswith("failed")}:
        raise RuntimeError(f"{peer}: {failed}\n{done.stderr}")
    return found


def table(found: dict[str, dict[str, str]]) -> str:
    """The table of the page."""
    lines = ["| | " + " | ".join(found) + " |\n", "|---|" + "---|" * len(found) + "\n"]
    for name, meaning in FEATURES.items():
        cells = " | ".join(_marked(answer[name]) for answer in found.values())
        lines.append(f"| {meaning} | {cells} |\n")
    return "".join(lines)


def _marked(answer: str) -> str:
    return f"**yes**{answer[3:]}" if answer.startswith("yes") else answer


def column(page: str, peer: str) -> list[str]:
    """What the table of a page says of a peer, line by line."""
    rows = [line.strip().strip("|").split(" | ") for line in _made(page).splitlines()]
    place = [cell.strip() for cell in rows[0]].index(peer)
    return [row[place].strip().replace("**", "") for row in rows[2:]]


def _made(page: str) -> str:
    return page.partition(BEGIN)[2].partition(END)[0].strip("\n")


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    made = table({peer: answers(peer) for peer in PROGRAMS})
    PAGE.write_text(f"{before}{BEGIN}\n{made}\n{END}{rest.partition(END)[2]}", encoding="utf-8")
