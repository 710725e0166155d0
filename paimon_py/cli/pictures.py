"""Charts of reports as inline SVG: bars, columns, lines. Pure; all text is escaped.

Colours are CSS variables of the page (`--bar`, `--ink`, `--soft`), so that dark mode works.
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon_py.html import escape

_ROW = 22
_NAME = 230
_BARS = 360
_VALUE = 110
_COLUMN = 66
_HEIGHT = 130
_FOOT = 34


def bars(rows: Sequence[tuple[str, float, str]], label: str) -> str:
    """Horizontal bars: a name, a number and its label for each row."""
    most = max((value for _, value, _ in rows), default=0) or 1
    parts = []
    for place, (name, value, text) in enumerate(rows):
        y, length = place * _ROW, max(1.0, _BARS * value / most)
        parts.append(_text(_NAME - 8, y + 15, name, anchor="end"))
        parts.append(f'<rect x="{_NAME}" y="{y + 4}" width="{length:.1f}" height="14" rx="2" fill="var(--bar)"/>')
        parts.append(_text(_NAME + length + 6, y + 15, text, soft=True))
    return _svg(_NAME + _BARS + _VALUE, max(1, len(rows)) * _ROW, parts, label)


def columns(rows: Sequence[tuple[str, float, str]], label: str, marked: int = 0) -> str:
    """Vertical columns: a name below, a label above; the first `marked` ones in the warning colour."""
    most = max((value for _, value, _ in rows), default=0) or 1
    parts = []
    for place, (name, value, text) in enumerate(rows):
        height = max(1.0, (_HEIGHT - 20) * value / most) if value else 0
        x, y = place * _COLUMN, _HEIGHT - height
        colour = "var(--warn)" if place < marked else "var(--bar)"
        parts.append(
            f'<rect x="{x + 5}" y="{y:.1f}" width="{_COLUMN - 10}" height="{height:.1f}" rx="2" fill="{colour}"/>'
        )
        parts.append(_text(x + _COLUMN / 2, y - 4, text, anchor="middle", soft=True))
        parts.append(_text(x + _COLUMN / 2, _HEIGHT + 16, name, anchor="middle"))
    return _svg(max(1, len(rows)) * _COLUMN, _HEIGHT + _FOOT, parts, label)


def line(points: Sequence[tuple[float, float]], label: str, width: int = 260, height: int = 60) -> str:
    """A line through points, ascending in x; the first and last points are marked."""
    if not points:
        return ""
    first, last = points[0][0], points[-1][0]
    least, most = min(0.0, *(y for _, y in points)), max(y for _, y in points) or 1.0
    wide, tall = (last - first) or 1, (most - least) or 1
    shown = [
        (4 + (x - first) / wide * (width - 8), height - 4 - (y - least) / tall * (height - 8)) for x, y in points
    ]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in shown)
    parts = [f'<polyline points="{path}" fill="none" stroke="var(--bar)" stroke-width="1.5"/>']
    parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="var(--bar)"/>' for x, y in (shown[0], shown[-1])]
    return _svg(width, height, parts, label)


def _text(x: float, y: float, text: str, *, anchor: str = "start", soft: bool = False) -> str:
    colour = "var(--soft)" if soft else "var(--ink)"
    shown = text if len(text) <= 34 else f"{text[:16]}…{text[-16:]}"
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(shown)}</text>'


def _svg(width: float, height: float, parts: Sequence[str], label: str) -> str:
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" role="img" aria-label="{escape(label)}">'
        f"<title>{escape(label)}</title>{''.join(parts)}</svg>"
    )
