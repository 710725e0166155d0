"""The pictures of the concept pages: `python docs/site/pictures.py` draws them into `docs/pictures/`.

A picture is 480 units wide, so that text can be read on a phone, and has a ground of its own for light and dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

HERE = Path(__file__).parents[1] / "pictures"
INK, LINE, PALE = "#1c2b33", "#4a6572", "#c9d6db"
BLUE, SKY, ORANGE, SAND, WHITE, GREY = "#2f7fb8", "#cfe6f7", "#c8742a", "#fbe3cc", "#ffffff", "#eef3f5"
WIDTH = 480


def card(height: int, title: str, story: str, *parts: str) -> str:
    """A picture: a ground of `height`, and parts on it. `title` and `story` are read out to who cannot see."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f"aria-labelledby=\"title story\" font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\" fill=\"{INK}\">\n"
        f'<title id="title">{escape(title)}</title>\n<desc id="story">{escape(story)}</desc>\n'
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="7" markerHeight="7" '
        f'orient="auto-start-reverse"><path d="M0 0 L10 5 L0 10 z" fill="{LINE}"/></marker></defs>\n'
        f'<rect x="1" y="1" width="{WIDTH - 2}" height="{height - 2}" rx="12" fill="#f6f9fa" stroke="{PALE}"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def text(x: float, y: float, words: str, size: int = 14, *, middle: bool = False, bold: bool = False) -> str:
    """Words on a line."""
    more = (' text-anchor="middle"' if middle else "") + (' font-weight="bold"' if bold else "")
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}"{more}>{escape(words)}</text>'


def box(x: float, y: float, w: float, h: float, words: str = "", fill: str = WHITE, edge: str = LINE) -> str:
    """A box with words in its middle, lines separated by a stroke."""
    lines = words.split("|") if words else []
    first = y + h / 2 + 5 - 9 * (len(lines) - 1)
    inside = [text(x + w / 2, first + 18 * at, line, middle=True) for at, line in enumerate(lines)]
    ground = f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="5" fill="{fill}" stroke="{edge}"/>'
    return "\n".join([ground, *inside])


def arrow(*points: tuple[float, float]) -> str:
    """A line along points, with a tip at its end."""
    path = " ".join(f"{x:g},{y:g}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{LINE}" stroke-width="2" marker-end="url(#tip)"/>'


def grid(
    x: float, y: float, widths: Sequence[float], rows: Iterable[Sequence[str]], fill: str, edge: str, heads: int = 1
) -> str:
    """Rows of cells, each 24 high; the first `heads` of them are heads."""
    parts = []
    for down, row in enumerate(rows):
        left = x
        for width, cell in zip(widths, row, strict=True):
            ground = fill if down < heads else WHITE
            place = f'x="{left:g}" y="{y + 24 * down:g}" width="{width:g}" height="24"'
            parts.append(f'<rect {place} fill="{ground}" stroke="{edge}"/>')
            parts.append(text(left + width / 2, y + 24 * down + 17, cell, 13, middle=True, bold=down < heads))
            left += width
    return "\n".join(parts)


def snapshots() -> str:
    """From a snapshot to its files."""
    return card(
        430,
        "What a snapshot points to",
        "Snapshot 3 points to a base list and a delta list. The base list names the manifests of everything before, "
        "the delta list the manifests of this commit. Manifests name data files. A tag keeps snapshot 1.",
        text(20, 34, "snapshots", bold=True),
        box(112, 14, 70, 32, "1", GREY),
        box(202, 14, 70, 32, "2", GREY),
        box(292, 14, 70, 32, "3", BLUE),
        '<text x="327" y="35" font-size="14" fill="#ffffff" text-anchor="middle" font-weight="bold">3</text>',
        text(374, 35, "the latest"),
        box(20, 58, 78, 26, "tag: may", SAND, ORANGE),
        arrow((98, 71), (147, 71), (147, 48)),
        text(20, 142, "lists", bold=True),
        box(112, 116, 150, 44, "base list:|before this commit", SKY, BLUE),
        box(300, 116, 160, 44, "delta list:|this commit", SAND, ORANGE),
        arrow((318, 46), (318, 84), (187, 84), (187, 114)),
        arrow((336, 46), (336, 84), (380, 84), (380, 114)),
        text(20, 236, "manifests", bold=True),
        box(112, 212, 70, 40, "+a +b", SKY, BLUE),
        box(192, 212, 70, 40, "+c", SKY, BLUE),
        box(330, 212, 100, 40, "−a +d", SAND, ORANGE),
        arrow((160, 160), (150, 210)),
        arrow((214, 160), (224, 210)),
        arrow((380, 160), (380, 210)),
        text(20, 330, "data files", bold=True),
        box(112, 306, 56, 40, "a", GREY),
        box(178, 306, 56, 40, "b", WHITE),
        box(244, 306, 56, 40, "c", WHITE),
        box(352, 306, 56, 40, "d", WHITE),
        arrow((134, 252), (138, 304)),
        arrow((158, 252), (200, 304)),
        arrow((228, 252), (266, 304)),
        arrow((384, 252), (382, 304)),
        '<line x1="116" y1="310" x2="164" y2="342" stroke="#c8742a" stroke-width="2"/>',
        text(20, 380, "Snapshot 3 holds the files b, c and d. File a is still there:"),
        text(20, 402, "snapshots 1 and 2 hold a, and the tag keeps snapshot 1."),
    )


def merge_tree() -> str:
    """How rows go through a bucket."""
    versions = [("run", "key", "value"), ("level 0", "7", "new"), ("level 5", "7", "old")]
    runs = [box(40 + 74 * at, 134, 64, 26, "", SAND, ORANGE) for at in range(4)]
    return card(
        452,
        "A bucket is a tree of sorted runs",
        "Rows go into a buffer in memory, from there sorted into files of level 0. Compaction merges runs into a "
        "higher level. A reader merges all runs: of each key the version with the highest sequence number counts.",
        box(40, 16, 190, 36, "rows that are written", GREY),
        arrow((135, 52), (135, 70)),
        box(40, 72, 190, 32, "buffer, sorted by key", GREY),
        arrow((135, 104), (135, 130)),
        text(244, 92, "one writer for each bucket", 13),
        *runs,
        text(346, 144, "level 0: each file"),
        text(346, 162, "is a sorted run"),
        arrow((190, 162), (190, 196)),
        text(204, 184, "compaction", 13),
        box(40, 200, 140, 28, "", SKY, BLUE),
        text(346, 220, "level 4: one run"),
        arrow((110, 230), (110, 264)),
        box(40, 268, 94, 30, "", BLUE, BLUE),
        box(138, 268, 94, 30, "", BLUE, BLUE),
        box(236, 268, 94, 30, "", BLUE, BLUE),
        text(346, 280, "level 5, the top:"),
        text(346, 298, "one run"),
        text(20, 336, "A read merges the runs of a key:", bold=True),
        grid(20, 348, (90, 60, 60), versions, SAND, LINE),
        arrow((236, 384), (292, 384)),
        grid(300, 360, (60, 80), [("key", "value"), ("7", "new")], SKY, LINE),
        text(20, 440, "The higher sequence number wins; no file is changed by an upsert.", 13),
    )


def engines() -> str:
    """What each merge engine makes of the same rows."""
    head = ("key", "a", "b", "n")
    rows = [head, ("1", "x", "", "5"), ("1", "", "y", "2")]
    widths = (40, 40, 40, 40)
    parts = []
    lines = [
        ("deduplicate", "the last row", ("1", "", "y", "2")),
        ("partial-update", "the last value of each column", ("1", "x", "y", "2")),
        ("aggregation", "n: sum, a and b: last value", ("1", "x", "y", "7")),
        ("first-row", "the first row", ("1", "x", "", "5")),
    ]
    for at, (name, meaning, row) in enumerate(lines):
        top = 116 + at * 92
        parts += [
            text(232, top + 14, name, 15, bold=True),
            text(232, top + 32, meaning, 13),
            grid(232, top + 40, widths, [row], WHITE, LINE, heads=0),
            arrow((186, 74), (206, 74), (206, top + 52), (226, top + 52)),
        ]
    return card(
        482,
        "Merge engines",
        "Two rows of key 1 were written: a is x and n is 5, then b is y and n is 2. Deduplicate keeps the last row, "
        "partial-update the last value of each column, aggregation adds n up, first-row keeps the first row.",
        text(20, 28, "rows of key 1, in the order written", bold=True),
        grid(20, 38, widths, rows, SAND, LINE),
        text(20, 136, "empty: NULL", 13),
        *parts,
    )


def changelogs() -> str:
    """The changes that each producer reports for the same commits."""
    told = [
        ("none", "what was written", [("+I", "Bonn")]),
        ("input", "what came in, with its kind", [("+I", "Bonn")]),
        ("lookup", "before and after, each commit", [("-U", "Ulm"), ("+U", "Bonn")]),
        ("full-compaction", "before and after, now and then", [("-U", "Ulm"), ("+U", "Bonn")]),
    ]
    parts, top = [], 150
    for name, meaning, rows in told:
        parts += [text(20, top + 16, name, 15, bold=True), text(20, top + 34, meaning, 13)]
        for at, (kind, city) in enumerate(rows):
            fill = SAND if kind == "-U" else SKY
            parts.append(box(310, top + 25 * at, 50, 22, kind, fill))
            parts.append(box(364, top + 25 * at, 96, 22, city, WHITE))
        top += 66
    return card(
        420,
        "Changelog producers",
        "The row of key 1 was Ulm and an upsert makes it Bonn. With none and input a stream sees the new row, with "
        "lookup and full-compaction the row before and the row after.",
        text(20, 30, "The row of key 1 is Ulm. Then:", bold=True),
        box(20, 42, 190, 34, "upsert: 1, Bonn", GREY),
        arrow((210, 59), (262, 59)),
        grid(270, 36, (60, 130), [("key", "city"), ("1", "Bonn")], SKY, LINE),
        text(20, 116, "changelog-producer", bold=True),
        text(310, 116, "a stream is told", bold=True),
        f'<line x1="20" y1="128" x2="460" y2="128" stroke="{PALE}" stroke-width="2"/>',
        *parts,
    )


PICTURES = {"snapshots": snapshots, "merge-tree": merge_tree, "merge-engines": engines, "changelogs": changelogs}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (HERE / f"{name}.svg").write_text(draw(), encoding="utf-8")
