"""The steps of a column's conversion plan, from array to array, or the reason why there is no plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pyarrow as pa

from paimon_py.spec.type_text import sql_type
from paimon_py.spec.types import DataType
from paimon_py.write.misfits import ColumnPlace

Step = Callable[[pa.Array], pa.Array]


class Refusal(NamedTuple):
    """The reason why a column cannot be written, as one line that includes the fix."""

    place: ColumnPlace
    given: pa.DataType
    wanted: DataType
    fix: str

    def __str__(self) -> str:
        return f"{self.place}: {self.given} given, {sql_type(self.wanted)} needed; {self.fix}"


def as_is(array: pa.Array) -> pa.Array:
    """The identity step."""
    return array


def way_of_extension(given: pa.DataType, wanted: pa.DataType) -> str:
    """Advice on converting an extension type to the needed type; empty if the type has no conversion of its own."""
    name = getattr(given, "extension_name", "")
    if name == "arrow.uuid" and pa.types.is_string(wanted):
        return "convert each value with str(…)"
    if name == "pandas.period":
        return "convert periods to timestamps with frame[…].dt.to_timestamp(), or to strings with frame[…].astype(str)"
    return ""
