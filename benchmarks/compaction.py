"""`python -m benchmarks.compaction`: what universal compaction costs, simulated over thousands of writes.

Nothing is measured: the figures follow from the picker's rules alone and are the same everywhere. `--docs` writes the
picture and the table of `docs/compaction.md`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.svg import Panel, picture
from paimon_py.testing.compaction_simulator import SimulatedWrite, Workload, simulate, summary

PAGE = Path(__file__).parents[1] / "docs" / "compaction.md"
PICTURE = PAGE.with_suffix(".svg")
WRITES = 2_000
SHOWN = 240
BEGIN, END = "<!-- simulated -->\n", "<!-- end -->\n"

_UPDATES = Workload(rows=10_000, keys=500_000)
_TRIGGER = "num-sorted-run.compaction-trigger"
CASES: tuple[tuple[str, Workload, dict[str, str]], ...] = (
    ("updates of 500 k keys", _UPDATES, {}),
    ("… trigger 3", _UPDATES, {_TRIGGER: "3"}),
    ("… trigger 10", _UPDATES, {_TRIGGER: "10"}),
    ("… size ratio 20", _UPDATES, {"compaction.size-ratio": "20"}),
    ("… size amplification 50 %", _UPDATES, {"compaction.max-size-amplification-percent": "50"}),
    ("… incremental size 50 MB", _UPDATES, {"compaction.incremental-size-threshold": "50 mb"}),
    ("… full after every 20 writes", Workload(rows=10_000, keys=500_000, full_every=20), {}),
    ("… deletion vectors", _UPDATES, {"deletion-vectors.enabled": "true"}),
    ("… deletion vectors, gentle", _UPDATES, {"deletion-vectors.enabled": "true", "lookup-compact": "gentle"}),
    ("half updates, half new keys", Workload(rows=10_000, updates=0.5), {}),
    ("new keys anywhere", Workload(rows=10_000, updates=0.0), {}),
    ("new keys in ascending order", Workload(rows=10_000, updates=0.0, ordered=True), {}),
    ("… in writes of 100 MB", Workload(rows=1_000_000, updates=0.0, ordered=True), {}),
)


def main(arguments: Sequence[str] | None = None) -> str:
    """Parse the command line, simulate and print; the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compaction", description=__doc__)
    parser.add_argument("--writes", type=int, default=WRITES)
    parser.add_argument("--docs", action="store_true", help="write the picture and the table of the documentation")
    chosen = parser.parse_args(arguments)
    made = table(chosen.writes)
    print(made, end="")
    if chosen.docs:
        PICTURE.write_text(drawing())
        PAGE.write_text(page(PAGE.read_text(), made))
    return made


def table(writes: int) -> str:
    """The figures of every case as Markdown."""
    lines = [
        "| 1 MB a write, default options | times written | bytes stored / needed, mean (most) | runs, mean (most) "
        "| compactions (of everything) | files only moved |",
        "|---|---|---|---|---|---|",
    ]
    for name, workload, options in CASES:
        got = summary(simulate(workload, options, writes))
        cells = (
            name,
            f"{got.write_amplification:.2f}",
            f"{got.space_amplification:.2f} ({got.most_space_amplification:.2f})",
            f"{got.runs:.1f} ({got.most_runs})",
            f"{got.compactions} ({got.full_compactions})",
            str(got.upgraded_files),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def page(text: str, made: str) -> str:
    """The page with its table made anew."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + made + END + rest.split(END)[1]


def drawing() -> str:
    """Levels, runs and amplification over the first writes of the first case."""
    _, workload, options = CASES[0]
    moments = list(simulate(workload, options, SHOWN))
    levels = [_level_bytes(moment) for moment in moments]
    top = max(level for sizes in levels for level in sizes)
    names = {level: f"level {level}" for level in range(top + 1)}
    stacked = [(name, [sizes.get(level, 0) / 1e6 for sizes in levels]) for level, name in names.items()]
    panels = [
        Panel("Bytes in the bucket after each write (MB)", stacked, stacked=True),
        Panel(
            "Sorted runs",
            [
                ("before", [len(moment.runs) for moment in moments]),
                ("after", [len(moment.after) for moment in moments]),
            ],
        ),
        Panel(
            "Amplification",
            [
                ("of writes", [moment.write_amplification for moment in moments]),
                ("of space", [moment.space_amplification for moment in moments]),
            ],
            unit="x",
        ),
    ]
    caption = f"{SHOWN} writes of 1 MB, each 10,000 of the same 500,000 keys; default options; simulated"
    return picture("Universal compaction of one bucket", panels, caption)


def _level_bytes(moment: SimulatedWrite) -> dict[int, int]:
    sizes: dict[int, int] = {}
    for run in moment.after:
        sizes[run.level] = sizes.get(run.level, 0) + run.size_bytes
    return sizes


if __name__ == "__main__":
    main()
