"""Ways into a variant: `$.user.id`, `$['odd key']`, `$.tags[0]`. Pure.

Source: format.md §8.9; Java `PathSegment.parse`.
"""

from __future__ import annotations

import functools
import re
from typing import Union

from paimon_py.errors import UsageError

Step = Union[str, int]
"""The key of an object, or the number of an element of an array."""

_STEP = re.compile(r"""\.(?P<key>[^.\[]+)|\[(?P<number>[0-9]{1,9})\]|\['(?P<one>[^']+)'\]|\["(?P<two>[^"]+)"\]""")
_PLAIN = re.compile(r"[^.\[\]'\"]+")


@functools.lru_cache(maxsize=256)
def parse_path(text: str) -> tuple[Step, ...]:
    """The steps of a path; none for `$`, the whole variant.

    Raises: UsageError
    """
    if not isinstance(text, str) or not text.startswith("$"):
        raise UsageError(f"a path into a variant begins with $, such as $.user.id or $.tags[0], not {text!r:.80}")
    steps: list[Step] = []
    at = 1
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            raise UsageError(
                f"the path {text!r:.80} cannot be read from {text[at:]!r:.40} on: a step is .key, ['key'], [\"key\"] "
                "or [number]"
            )
        number = found["number"]
        steps.append(found["key"] or found["one"] or found["two"] if number is None else int(number))
        at = found.end()
    return tuple(steps)


def column_name(column: str, text: str) -> str:
    """How a part of a column is called where it is a column of its own: `payload.user.id`, `payload.tags[0]`."""
    name = column
    for step in parse_path(text):
        if isinstance(step, int):
            name += f"[{step}]"
        else:
            name += f".{step}" if _PLAIN.fullmatch(step) else f"[{step!r}]"
    return name
