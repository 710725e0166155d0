"""Python values as Arrow arrays."""

import subprocess
import sys
from datetime import date

import pyarrow as pa
import pytest

from paimon_py.codec.python_values import python_array

USUAL = [
    ([1, -2, 2**31 - 1], pa.int32()),
    ([2**63 - 1], pa.int64()),
    ([1.5, float("nan"), -0.0, float("-inf")], pa.float64()),
    ([True, False], pa.bool_()),
    (["a", "", "ü"], pa.string()),
    ([date(1969, 12, 31), date(2024, 2, 29)], pa.date32()),
    ([None, None], pa.timestamp("us")),
]
OTHERS = [
    ([1, None], pa.int32()),
    ([1.5, 2], pa.float64()),
    ([0.1], pa.float32()),
    ([b"x"], pa.binary()),
    ([[1, None]], pa.list_(pa.int64())),
    ([], pa.int64()),
]


@pytest.mark.parametrize(("values", "kind"), [*USUAL, *OTHERS], ids=str)
def test_values_convert_as_arrow_converts_them(values, kind):
    found = python_array(values, kind)
    found.validate(full=True)
    assert str(found) == str(pa.array(values, kind)) and found.type == kind


@pytest.mark.parametrize(("value", "kind"), [(2**31, pa.int32()), ("x", pa.int64()), ("\ud800", pa.string())])
def test_values_outside_a_type_raise_an_error(value, kind):
    with pytest.raises((OverflowError, ValueError, TypeError, pa.ArrowException)):
        python_array([value], kind)


def test_the_usual_values_do_not_import_pandas():
    lines = "".join(f"python_array({values!r}, pa.{kind}())\n" for values, kind in [([1], "int64"), ([0.5], "float64")])
    code = f"import sys, pyarrow as pa\nfrom paimon_py.codec.python_values import python_array\n{lines}"
    done = subprocess.run([sys.executable, "-c", f"{code}print('pandas' in sys.modules)"], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr
