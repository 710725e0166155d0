"""Finds the columns of a Parquet file that store parts of variants.

Source: format.md §8.9.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from paimon_py.codec.variant.form import METADATA, TYPED, VALUE
from paimon_py.spec.types import Atomic, Root, VariantPart, VariantParts
from paimon_py.spec.variant_paths import Step, parse_path

_WITH_KEYS = frozenset((Root.CHAR, Root.VARCHAR, Root.VARIANT))


def part_paths(path: str, kind: VariantParts, stored: pa.DataType) -> list[str]:
    """The columns of the group `path` to decode for some parts: only those that store the parts."""
    found: dict[str, None] = {}
    for field in kind.fields:
        assert isinstance(field, VariantPart)
        found |= dict.fromkeys(_paths(path, field, stored))
    return list(found)


def _paths(path: str, part: VariantPart, stored: pa.DataType) -> Iterator[str]:
    steps = parse_path(part.path)
    deepest, node, left = _deepest(path, stored, steps)
    names = [field.name for field in node]
    is_scalar = isinstance(part.type, Atomic) and part.type.root not in _WITH_KEYS
    if left or not is_scalar or deepest == path:
        yield f"{path}.{METADATA}"  # keys are needed for parts that are not columns
    if left and not isinstance(left[0], int):
        yield f"{deepest}.{VALUE if VALUE in names else TYPED}"
        return
    yield from (f"{deepest}.{name}" for name in (VALUE, TYPED) if name in names)


def _deepest(path: str, node: pa.DataType, steps: Sequence[Step]) -> tuple[str, pa.DataType, Sequence[Step]]:
    """The group of the deepest node on a path of keys, and the remaining steps."""
    while steps:
        inner = inner_node(node, steps[0])
        if inner is None:
            break
        path, node, steps = f"{path}.{TYPED}.{steps[0]}", inner, steps[1:]
    return path, node, steps


def inner_node(node: pa.DataType, step: Step) -> pa.DataType | None:
    """The node of a key that has its own group; None if it does not."""
    typed = node.get_field_index(TYPED)
    inside = node.field(typed).type if typed >= 0 else None
    if inside is None or not pa.types.is_struct(inside) or not isinstance(step, str):
        return None
    index = inside.get_field_index(step)
    return inside.field(index).type if index >= 0 else None
