"""Charts as SVG text: one function per kind of chart, panels below each other, no dependency."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 150
LEFT, RIGHT, TOP, GAP = 64, 96, 30, 28
COLOURS = ("#d95f02", "#fdb863", "#c7dbe9", "#9dc1dd", "#5f9bc9", "#2b6ca3", "#12436d", "#062a49")

_Point = Callable[[int, float], str]


@dataclass(frozen=True)
class Panel:
    """A chart: series with a name each, one value per step.

    `stacked`: series are areas on top of each other, else lines. `unit` follows the numbers of the axis.
    """

    title: str
    series: Sequence[tuple[str, Sequence[float]]]
    stacked: bool = False
    unit: str = ""


def picture(title: str, panels: Sequence[Panel], caption: str) -> str:
    """Panels of equal width below each other, with a common axis of steps.

    Shapes: every series of every panel has the same number of values, at least two.
    """
    height = 34 + len(panels) * (TOP + HEIGHT + GAP) + 22
    total = LEFT + WIDTH + RIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {height}"',
        'font-family="sans-serif" font-size="11">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{total}" height="{height}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="22" font-size="15" fill="#222222">{escape(title)}</text>',
    ]
    for number, panel in enumerate(panels):
        parts += _panel(panel, 34 + number * (TOP + HEIGHT + GAP) + TOP)
    parts.append(f'<text x="{LEFT}" y="{height - 8}" fill="#555555">{escape(caption)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(panel: Panel, top: int) -> list[str]:
    steps = len(panel.series[0][1])
    together: Callable[[Sequence[float]], float] = sum if panel.stacked else max
    columns = zip(*(values for _, values in panel.series), strict=True)
    limit = _round_up(max(float(together(column)) for column in columns))
    bottom = top + HEIGHT

    def point(step: int, value: float) -> str:
        return f"{LEFT + step * WIDTH / (steps - 1):.1f},{bottom - value * HEIGHT / limit:.1f}"

    parts = [f'<text x="{LEFT}" y="{top - 8}" font-weight="bold" fill="#222222">{escape(panel.title)}</text>']
    for quarter in range(5):
        y = bottom - quarter * HEIGHT / 4
        parts.append(f'<line x1="{LEFT}" y1="{y:g}" x2="{LEFT + WIDTH}" y2="{y:g}" stroke="#dddddd"/>')
        label = f"{limit * quarter / 4:g}{panel.unit}"
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:g}" text-anchor="end" fill="#555555">{label}</text>')
    parts += _areas(panel, point) if panel.stacked else _lines(panel, point)
    for quarter in range(5):
        x = LEFT + quarter * WIDTH / 4
        label = f"{1 + (steps - 1) * quarter / 4:.0f}"
        parts.append(f'<text x="{x:g}" y="{bottom + 14}" text-anchor="middle" fill="#555555">{label}</text>')
    for number, (name, _) in enumerate(panel.series):
        x, y = LEFT + WIDTH + 10, top + 6 + 15 * number
        parts.append(f'<rect x="{x}" y="{y - 8}" width="9" height="9" fill="{_colour(panel, number)}"/>')
        parts.append(f'<text x="{x + 14}" y="{y}" fill="#222222">{escape(name)}</text>')
    return parts


def _areas(panel: Panel, point: _Point) -> list[str]:
    floor = [0.0] * len(panel.series[0][1])
    parts = []
    for number in reversed(range(len(panel.series))):
        roof = [below + value for below, value in zip(floor, panel.series[number][1], strict=True)]
        there = [point(step, value) for step, value in enumerate(roof)]
        back = [point(step, value) for step, value in reversed(list(enumerate(floor)))]
        parts.append(f'<polygon points="{" ".join(there + back)}" fill="{_colour(panel, number)}"/>')
        floor = roof
    return parts


def _lines(panel: Panel, point: _Point) -> list[str]:
    return [
        f'<polyline points="{" ".join(point(step, value) for step, value in enumerate(values))}" fill="none" '
        f'stroke="{_colour(panel, number)}" stroke-width="1.5"/>'
        for number, (_, values) in enumerate(panel.series)
    ]


def _colour(panel: Panel, number: int) -> str:
    return COLOURS[number] if panel.stacked else COLOURS[(0, 5, 2, 6)[number % 4]]


def _round_up(value: float) -> float:
    """The next number of the form 1, 2, 4 or 8 times a power of ten."""
    step = 1.0
    while step * 8 < value:
        step *= 10
    return next(step * factor for factor in (1, 2, 4, 8) if step * factor >= value)
