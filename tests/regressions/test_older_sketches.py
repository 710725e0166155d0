"""A sketch that is older than what is there comes before it: the bytes of some unions depend on the order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from engine_values import SKETCHES

from paimon_py.lsm.aggregates import aggregator_of
from paimon_py.lsm.aggregates.base import ADD, ADD_REVERSED, Fold
from paimon_py.spec.new_schema import Schema, TableSpec, new_table_schema


@pytest.mark.parametrize("function", SKETCHES)
def test_an_older_value_is_united_as_if_it_had_come_first(function):
    if function.endswith("sketch"):
        pytest.importorskip("datasketches")
    spec = TableSpec(primary_keys=("id",), options={"bucket": "1", "merge-engine": "aggregation", "fields.c.aggregate-function": function})
    unite = aggregator_of(new_table_schema(Schema([("id", "INT"), ("c", "BYTES")]), spec, time_millis=1), "c", function)
    one, two = map(bytes.fromhex, SKETCHES[function])

    def united(values, *actions):
        return unite(pa.array(values, pa.binary()), Fold(np.array([0]), np.array([2]), np.array(actions, np.int8))).to_pylist()

    assert united([two, one], ADD, ADD_REVERSED) == united([one, two], ADD, ADD)
