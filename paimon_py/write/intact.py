"""Refuses values that their own Arrow type does not allow, which other libraries can pass, before they are written.

Arrow validates values only on request: strings that are not UTF-8, decimals with more digits than their type, times
outside the day, indices outside a dictionary or list. Files that contain them could not be read.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import child_range
from paimon_py.write.misfits import ColumnPlace, Misfit
from paimon_py.write.steps import Step, as_is

_FIX = "; mend the values where they are made"


def with_validation(step: Step, kind: pa.DataType, place: ColumnPlace) -> Step:
    """The step, preceded by a validation of the values if values of their Arrow type can be invalid.

    Cost: 2-4 ns per string, dictionary index and decimal, less for times.
    Raises: the step raises Misfit for the first invalid value.
    """
    if not _can_break(kind):
        return step

    def convert(array: pa.Array) -> pa.Array:
        try:
            check_values(array)
        except pa.ArrowInvalid as error:
            is_text = "UTF8" in str(error)
            before = " contains bytes that are not UTF-8 (" if is_text else f" is not valid as {array.type}: {error} ("
            raise Misfit(place, _first_broken(array), before, f"){_FIX}") from error
        return array if step is as_is else step(array)

    return convert


def _can_break(kind: pa.DataType) -> bool:
    """Whether an array of a type may contain values that are not valid for it."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _can_break(kind.storage_type)
    if types.is_struct(kind):
        return any(_can_break(field.type) for field in kind)
    if types.is_nested(kind) or types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return True
    return bool(
        types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind) or types.is_decimal(kind)
        or types.is_time(kind) or types.is_date64(kind) or types.is_binary(kind) or types.is_large_binary(kind)
        or types.is_binary_view(kind)
    )  # fmt: skip


def check_values(array: pa.Array) -> None:
    """Validate the values of an array, and those of its children as far as they are used.

    Raises: ArrowInvalid
    """
    kind, types = array.type, pa.types
    if not len(array):
        return
    if isinstance(kind, pa.BaseExtensionType):
        check_values(array.storage)
    elif types.is_struct(kind):
        for part in array.flatten():  # a part of a NULL is NULL, whatever its buffers contain
            if _can_break(part.type):
                check_values(part)
    elif types.is_map(kind) or types.is_list(kind) or types.is_large_list(kind):
        array.validate()
        _, _, first, last = child_range(array)
        offsets = np.asarray(array.offsets)
        if (np.diff(offsets) < 0).any() or first < 0 or last > len(array.values):
            raise pa.ArrowInvalid("lists begin or end outside of their values")
        used = array.values.slice(first, last - first)
        if _can_break(used.type):
            check_values(used)
    elif types.is_fixed_size_list(kind):
        if _can_break(kind.value_type):
            check_values(array.flatten())
    else:
        array.validate(full=True)


def _first_broken(array: pa.Array) -> int:
    """The first invalid row of an array that has one."""
    first, end = 0, len(array)
    while end - first > 1:
        half = (first + end) // 2
        if _is_broken(array.slice(first, half - first)):
            end = half
        else:
            first = half
    return first


def _is_broken(array: pa.Array) -> bool:
    try:
        check_values(array)
    except pa.ArrowInvalid:
        return True
    return False
