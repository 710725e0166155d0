"""Small pages for notebooks: a title, facts, tables and notes as HTML. Pure; all content is escaped.

A page is the result of `_repr_html_` of a value. Pages should read little, and report what could not be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

CELLS_MAX = 50
"""The maximum number of rows of a table on a page."""

TEXT_MAX = 300
"""The maximum number of characters of a value on a page."""

_LONG = 20

_SPANS = ((0, 31), (127, 159), (0x61C, 0x61C), (0x200B, 0x200B), (0x200E, 0x200F), (0x2028, 0x202E), (0x2060, 0x206F))
_UNSEEN = [code for first, last in _SPANS for code in range(first, last + 1)]
"""Characters that are invisible, or that change the direction of text: controls, marks, separators."""

_MARKUP = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"}
_ESCAPES = str.maketrans({**{chr(code): ascii(chr(code))[1:-1] for code in _UNSEEN}, **_MARKUP})
_LINES = {code: text for code, text in _ESCAPES.items() if code != ord("\n")}
_CELL = "text-align:left;vertical-align:top;padding:2px 12px 2px 0"
_SHORT = 40


def page(title: str, *parts: str) -> str:
    """A title and the parts below it."""
    return f'<div class="paimon-py"><b>{escape(title)}</b>{"".join(parts)}</div>'


def facts(known: Mapping[str, object]) -> str:
    """Names and values, one pair per line; omits None."""
    return grid((), [(name, value) for name, value in known.items() if value is not None])


def grid(names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with a line for each row, at most CELLS_MAX of them; a long or wide one scrolls in its own box."""
    listed = list(rows)
    lines = ["".join(_cell("td", value) for value in row) for row in listed[:CELLS_MAX]]
    if names:
        lines.insert(0, "".join(_cell("th", name) for name in names))
    table = "".join(f"<tr>{line}</tr>" for line in lines)
    left = len(listed) - CELLS_MAX
    height = ";max-height:22em" if len(listed) > _LONG else ""
    rest = note(f"… {left} more") if left > 0 else ""
    return f'<div style="overflow:auto{height};margin:2px 0 6px"><table style="margin:0">{table}</table></div>{rest}'


def note(text: str) -> str:
    """A line of plain text."""
    return f'<div style="color:gray">{escape(text)}</div>'


def preformat(text: str) -> str:
    """Preformatted text."""
    return f'<pre style="white-space:pre;overflow:auto">{_whole(text).translate(_LINES)}</pre>'


def section(title: str, *parts: str) -> str:
    """A part of a page with its own title."""
    return f'<div style="margin-top:6px"><i>{escape(title)}</i>{"".join(parts)}</div>'


def escape(value: object) -> str:
    """A value as text that browsers do not interpret, cut if it is very long."""
    text = value if isinstance(value, str) else str(value)
    return _whole(text if len(text) <= TEXT_MAX else text[:TEXT_MAX] + "…").translate(_ESCAPES)


def join_values(values: Iterable[object], most: int = 20) -> str:
    """Values separated by commas, at most `most` of them."""
    found = list(values)
    shown = ", ".join(map(str, found[:most]))
    return shown if len(found) <= most else f"{shown}, … {len(found) - most} more"


class AsPage:
    """A value whose fields make a page: a mixin for results."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        names: tuple[str, ...] = type(self).__struct_fields__  # type: ignore[attr-defined]
        return page(type(self).__name__, facts({name: _plain(name, getattr(self, name)) for name in names}))


def moment(millis: int) -> str:
    """A time in UTC as readable text."""
    try:
        return datetime.fromtimestamp(millis / 1000, timezone.utc).isoformat(" ", "seconds")
    except (OverflowError, ValueError, OSError):
        return f"{millis} ms after 1970"


def _plain(name: str, value: Any) -> object:
    """The value of a field as readable text; None if empty."""
    if name.endswith("_millis") and value is not None:
        return f"{value} ({moment(value)})"
    if isinstance(value, (tuple, list, frozenset, set)):
        return join_values(value) if value else None
    return value


def _cell(tag: str, value: object) -> str:
    text = str(value)
    wraps = "white-space:nowrap" if len(text) <= _SHORT else "min-width:16em;overflow-wrap:anywhere"
    return f'<{tag} style="{_CELL};{wraps}">{escape(text)}</{tag}>'


def _whole(text: str) -> str:
    """A text that can be encoded as UTF-8: lone surrogates are escaped."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
