"""Which columns of an engine a table takes as they are."""

from __future__ import annotations

import pyarrow as pa

from paimon_py.spec.types import Field
from paimon_py.write.convert import plan
from paimon_py.write.misfits import place_of
from paimon_py.write.steps import Refusal


def takes_type(field: Field, given: pa.DataType) -> bool:
    """Whether a column takes values of an Arrow type; each value is looked at when it is written."""
    return not isinstance(plan(given, field.type, place_of(field.name)), Refusal)
