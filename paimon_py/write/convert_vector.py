"""Converts lists from users to vectors."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.columns import numpy_values
from paimon_py.codec.vectors import lists_as_vectors
from paimon_py.spec.type_text import sql_type
from paimon_py.spec.types import VectorType
from paimon_py.write.misfits import ColumnPlace, Misfit
from paimon_py.write.steps import Step


def vector_step(lists: Step, target: VectorType, place: ColumnPlace) -> Step:
    """The conversion to vectors, after `lists`, which returns lists without NULL elements.

    The step raises Misfit for a vector of another length.
    """
    arrow = to_arrow_type(target)

    def convert(array: pa.Array) -> pa.Array:
        if array.type.equals(arrow) and array.values.null_count == 0:
            return array
        found = lists(array)
        lengths = pc.fill_null(pc.list_value_length(found), target.length)
        wrong = numpy_values(lengths) != target.length
        if wrong.any():
            row = int(np.argmax(wrong))
            count = lengths[row].as_py()
            fix = "pad it, or leave the row out: all vectors of a column are equally long"
            raise Misfit(place, row, ": a vector (", f", {count} elements) does not fit {sql_type(target)}; {fix}")
        return lists_as_vectors(found, arrow)

    return convert
