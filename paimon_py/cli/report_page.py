"""The page of a report: one HTML file with charts, for a browser or an e-mail. Pure; all text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone

from paimon_py.cli.pictures import bars, columns, line
from paimon_py.cli.report_values import EDGES, TableReport
from paimon_py.cli.sizes import size_text
from paimon_py.doctor.finding import PROBLEM, SEVERITIES, WARNING
from paimon_py.html import escape

_LARGEST = 20
_GROWING = 12
_SMALL = 3
"""The number of leading sizes in `EDGES` that count as small files: below 8 MB."""
_STYLE = """
:root{--ink:#1f2933;--soft:#616e7c;--bar:#3572b0;--warn:#d9822b;--bad:#c23030;--line:#dfe3e8;--page:#fff}
@media (prefers-color-scheme:dark){
:root{--ink:#e4e7eb;--soft:#9aa5b1;--bar:#6ea8dc;--warn:#e8a35a;--bad:#f07171;--line:#3e4c59;--page:#1b2027}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page)}
body{max-width:1000px;margin:0 auto;padding:20px}
h1{font-size:22px;margin:0;overflow-wrap:anywhere} h2{font-size:17px;margin:34px 0 8px}
p{color:var(--soft);margin:4px 0 10px} .scroll{overflow-x:auto}
svg{max-width:100%;height:auto;font:12px system-ui,sans-serif}
table{border-collapse:collapse;font-size:14px}
th,td{text-align:left;padding:5px 14px 5px 0;border-bottom:1px solid var(--line);vertical-align:top}
td.n,th.n{text-align:right} code{font-size:13px}
.problem{color:var(--bad)} .warning{color:var(--warn)} .note{color:var(--soft)}
.tiles{display:flex;flex-wrap:wrap;gap:26px;margin:16px 0} .tiles b{display:block;font-size:22px}
.many{display:flex;flex-wrap:wrap;gap:18px} .many div{width:270px;overflow-wrap:anywhere}
.many small{color:var(--soft)}
td:first-child{overflow-wrap:anywhere;min-width:120px}
@media (max-width:640px){table,tbody,tr,td{display:block} th{display:none}
td,td.n{border:0;padding:1px 0;text-align:left} tr{border-bottom:1px solid var(--line);padding:6px 0}
td[title]:not(:empty)::after{content:" " attr(title);color:var(--soft)}}
"""


def report_page(warehouse: str, tables: Sequence[TableReport], now_millis: int) -> str:
    """The whole page."""
    when = datetime.fromtimestamp(now_millis / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    body = "".join(_parts(warehouse, tables, when))
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head += f"<title>{escape(warehouse)}</title>"
    return f'<!doctype html>\n<html lang="en"><head>{head}<style>{_STYLE}</style></head><body>{body}</body></html>\n'


def _parts(warehouse: str, tables: Sequence[TableReport], when: str) -> Iterator[str]:
    seen = [one for one in tables if one.measures is not None]
    yield f"<h1>{escape(warehouse)}</h1><p>{escape(when)}</p>"
    yield _tiles(tables)
    yield from _care(seen)
    yield from _sizes(seen)
    yield from _files(seen)
    yield from _growth(seen)
    yield from _skew(seen)
    failed = [one for one in tables if one.error is not None]
    if failed:
        yield "<h2>Tables that cannot be read</h2>"
        yield _table(("table", "why"), ([escape(one.name), escape(one.error or "")] for one in failed))


def _tiles(tables: Sequence[TableReport]) -> str:
    found = [one.measures for one in tables if one.measures is not None]
    sick = sum(any(finding.severity in (PROBLEM, WARNING) for finding in one.findings) for one in tables)
    tiles = (
        ("tables", f"{len(tables):,}"), ("size", size_text(sum(one.size_bytes for one in found))),
        ("files", f"{sum(one.file_count for one in found):,}"),
        ("rows in files", f"{sum(one.record_count for one in found):,}"), ("need care", f"{sick:,}"),
    )  # fmt: skip
    shown = "".join(f"<div><b>{escape(value)}</b>{escape(name)}</div>" for name, value in tiles)
    return f'<div class="tiles">{shown}</div>'


def _care(tables: Sequence[TableReport]) -> Iterator[str]:
    yield "<h2>Tables that need care</h2>"
    found = [(one, finding) for one in tables for finding in one.findings]
    found.sort(key=lambda pair: (SEVERITIES.index(pair[1].severity), -_size(pair[0])))
    if not found:
        yield "<p>None: doctor found no problems.</p>"
    else:
        rows = (
            [escape(one.name), f'<span class="{finding.severity}">{finding.severity}</span>', escape(finding.message),
             f"<code>{escape(finding.mend)}</code>"]
            for one, finding in found
        )  # fmt: skip
        yield _table(("table", "", "what", "what to call"), rows)
    gains = [one for one in tables if _brings(one)]
    if gains:
        yield "<h2>Effect of maintenance</h2><p><code>paimon-py care</code> does all of this.</p>"
        shown = (
            [escape(one.name), _change(one), _number(one.gain.snapshots), _number(one.gain.freed_files),
             f"{one.gain.orphans:,} of {size_text(one.gain.orphan_bytes)}" if one.gain.orphans else ""]
            for one in gains
        )  # fmt: skip
        names = ("table", "data files after compaction", "snapshots that expire", "files to delete", "orphans")
        yield _table(names, shown, right=(1, 2, 3, 4))


def _sizes(tables: Sequence[TableReport]) -> Iterator[str]:
    yield "<h2>Sizes</h2>"
    rows = [(one.name, float(_size(one)), size_text(_size(one))) for one in tables[:_LARGEST]]
    yield _scroll(bars(rows, "tables by size")) if rows else "<p>No table.</p>"
    if len(tables) > _LARGEST:
        yield f"<p>The largest {_LARGEST} of {len(tables):,}.</p>"


def _files(tables: Sequence[TableReport]) -> Iterator[str]:
    totals = [sum(one.sizes[place] for one in tables if one.sizes) for place in range(len(EDGES) + 1)]
    if not sum(totals):
        return
    names = [f"≤ {size_text(edge).replace('.0', '')}" for edge in EDGES] + ["more"]
    small = sum(totals[:_SMALL])
    yield "<h2>Small files</h2>"
    yield f"<p>{small:,} of {sum(totals):,} data files are smaller than {size_text(EDGES[_SMALL - 1])}.</p>"
    rows = [(name, float(count), f"{count:,}") for name, count in zip(names, totals, strict=True)]
    yield _scroll(columns(rows, "data files by size", marked=_SMALL))
    worst = sorted(tables, key=lambda one: -sum(one.sizes[:_SMALL]))[:10]
    shown = [
        [escape(one.name), f"{sum(one.sizes[:_SMALL]):,}", f"{sum(one.sizes):,}"]
        for one in worst
        if sum(one.sizes[:_SMALL])
    ]
    yield _table(("table", "small files", "files"), shown, right=(1, 2)) if shown else ""


def _growth(tables: Sequence[TableReport]) -> Iterator[str]:
    pictures: list[str] = []
    for one in tables:
        counted = [entry for entry in reversed(one.history) if entry.total_rows is not None]
        points = [(float(entry.time_millis), float(entry.total_rows or 0)) for entry in counted]
        if len(points) < 2 or len(pictures) >= _GROWING:
            continue
        change = points[-1][1] - points[0][1]
        span = _span((points[-1][0] - points[0][0]) / 1000)
        said = f"{change:+,.0f} rows in {span}, {len(points)} commits"
        picture = line(points, f"rows of {one.name}")
        pictures.append(f"<div>{escape(one.name)}<br>{picture}<br><small>{escape(said)}</small></div>")
    if pictures:
        yield "<h2>Growth</h2><p>Rows in all files, over the existing snapshots.</p>"
        yield f'<div class="many">{"".join(pictures)}</div>'


def _skew(tables: Sequence[TableReport]) -> Iterator[str]:
    found = sorted((one for one in tables if one.skew is not None), key=lambda one: -(one.skew or 0))[:10]
    if found:
        yield "<h2>Skew</h2><p>Rows of the largest bucket, as a multiple of the mean of its partition.</p>"
        rows = [(one.name, one.skew or 0.0, f"{one.skew or 0:.1f}×") for one in found]
        yield _scroll(bars(rows, "skew of buckets"))


def _table(names: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> str:
    """A table of cells that are already HTML."""
    kinds = ['class="n"' if place in right else "" for place in range(len(names))]
    head = "".join(f"<th {kind}>{escape(name)}</th>" for kind, name in zip(kinds, names, strict=True))
    # on narrow screens, cells are stacked, and numeric cells show their names
    marked = [f'{kind} title="{escape(name)}"' if kind else "" for kind, name in zip(kinds, names, strict=True)]
    lines = ("".join(f"<td {mark}>{cell}</td>" for mark, cell in zip(marked, row, strict=True)) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return _scroll(f"<table><tr>{head}</tr>{body}</table>")


def _scroll(content: str) -> str:
    return f'<div class="scroll">{content}</div>'


def _size(one: TableReport) -> int:
    return 0 if one.measures is None else one.measures.size_bytes


def _brings(one: TableReport) -> bool:
    gain = one.gain
    return gain.files_after < gain.files_before or bool(gain.snapshots or gain.orphans)


def _change(one: TableReport) -> str:
    gain = one.gain
    return f"{gain.files_before:,} → about {gain.files_after:,}" if gain.files_after < gain.files_before else ""


def _number(count: int) -> str:
    return f"{count:,}" if count else ""


def _span(seconds: float) -> str:
    for unit, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"
