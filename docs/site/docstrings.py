"""Docstrings of paimon_py as the API reference shows them."""

from __future__ import annotations

import re
from typing import Any

import griffe

LABELLED = re.compile(r"^(Cost|Raises|Returns|Source|Memory): *(?P<text>\S[^\n]*(?:\n[ \t]+\S[^\n]*)*)", re.M)
FLAT = re.compile(r"\s*\n\s*")


class Labels(griffe.Extension):
    """Makes a paragraph of what stands behind `Cost:`, `Raises:`, `Returns:` and `Source:` on one line."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Mend the docstring of an object."""
        if obj.docstring is not None:
            obj.docstring.value = LABELLED.sub(_paragraph, obj.docstring.value)


def _paragraph(found: re.Match[str]) -> str:
    return f"\n**{found[1]}:** {FLAT.sub(' ', found['text'])}\n"
