"""Numbers and strings in JSON metadata, converted as Java does, whichever writer produced them.

Source: Jackson's coercion of scalars in `Snapshot`, `Tag`, `SchemaSerializer`, `DataField`.
"""

from __future__ import annotations

import json
import re
from typing import Any

_EXACT_MAX = 2**53
_DIGITS = re.compile(r"\s*[+-]?[0-9]{1,19}\s*")


def whole_number(value: Any) -> int | None:
    """The 64-bit integer of a JSON value: 3, 3.0 and "3" are equal; None for anything else."""
    is_exact = isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT_MAX
    if is_exact or (isinstance(value, str) and _DIGITS.fullmatch(value)):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        return None
    return value


def plain_text(value: Any) -> str | None:
    """The string of a JSON value: numbers and booleans as they are written; None for lists, objects and null."""
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, (int, float)) else None
