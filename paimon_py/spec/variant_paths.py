"""Parses paths into a variant: `$.user.id`, `$['odd key']`, `$.tags[0]`. Pure.

Source: format.md §8.9; Java `PathSegment.parse`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection
from typing import Union

import msgspec

from paimon_py.errors import UsageError
from paimon_py.spec.type_text import UNASSIGNED, contains, sql_type, with_nullability
from paimon_py.spec.types import Atomic, DataType, MultisetType, Root, VariantPart, VariantParts, VectorType

Step = Union[str, int]
"""The key of an object field, or the index of an array element."""

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


def part_of(path: str, kind: DataType, or_null: bool) -> VariantPart:
    """A part of a variant as a field, with a name derived from all its properties.

    Raises: UsageError for an invalid path, or a type that variants cannot be cast to.
    """
    parse_path(path)
    if contains(kind, lambda inner: isinstance(inner, (MultisetType, VectorType))):
        raise UsageError(f"variants cannot be cast to {sql_type(kind)}: ask for an ARRAY or a MAP")
    kind = with_nullability(kind, True)
    name = f"{path} AS {sql_type(kind)}{' OR NULL' if or_null else ''}"
    return VariantPart(id=UNASSIGNED, name=name, type=kind, path=path, or_null=or_null)


WHOLE = VariantPart(id=UNASSIGNED, name="$", type=Atomic(Root.VARIANT), path="$")
"""The whole variant, next to parts of it."""


def with_parts(kind: DataType, parts: Collection[VariantPart]) -> DataType:
    """The type of the requested parts of a VARIANT, without duplicates."""
    if not parts or not isinstance(kind, Atomic):
        return kind
    distinct = {part.name: part for part in parts}.values()
    fields = tuple(msgspec.structs.replace(part, id=at) for at, part in enumerate(distinct))
    return VariantParts(fields, kind.nullable)


def column_name(column: str, text: str) -> str:
    """The name of a part as a separate column: `payload.user.id`, `payload.tags[0]`."""
    name = column
    for step in parse_path(text):
        if isinstance(step, int):
            name += f"[{step}]"
        else:
            name += f".{step}" if _PLAIN.fullmatch(step) else f"[{step!r}]"
    return name
