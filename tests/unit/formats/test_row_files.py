"""Files of the format `row` that are cut off or are none."""

from __future__ import annotations

import io

import pytest

from paimon_py import CorruptionError, UnsupportedError
from paimon_py.formats.base import ReadSettings
from paimon_py.formats.registry import by_extension
from paimon_py.spec.schema import VALUE_KIND
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import Field


@pytest.mark.parametrize("data, size", [(b"", 0), (b"x" * 31, 31), (b"x" * 40, 60), (b"x" * 40, 40), (b"\0" * 64, 64)])
def test_a_damaged_end_is_named(data, size):
    with pytest.raises(CorruptionError, match=r"f\.row"):
        by_extension("f.row").open(io.BytesIO(data), "f.row", (), size, ReadSettings())


def test_files_of_tables_with_keys_are_refused_before_they_are_read():
    stored = (Field(0, VALUE_KIND, parse_type("TINYINT NOT NULL")),)
    with pytest.raises(UnsupportedError, match="primary keys"):
        by_extension("f.row").open(io.BytesIO(b""), "f.row", (), 0, ReadSettings(stored=stored))
