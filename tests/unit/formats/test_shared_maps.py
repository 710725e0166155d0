"""Maps in columns that several keys share, made by hand as Java 2.0 stores them: `tests/interop` compares with Java."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
import zstandard

from paimon_py.errors import UnsupportedError
from paimon_py.formats.shared_maps import as_map, shared_keys
from paimon_py.spec.type_text import parse_type

KIND = parse_type("MAP<STRING NOT NULL, BIGINT>")
TARGET = pa.map_(pa.string(), pa.int64())
NUMBERS = {"late": 7, "a": 0, "ü": 3, "b": 1}
PREFIX = "paimon.map.shared-shredding."


def field(kind, compression="none", said=None):
    data = json.dumps(NUMBERS, ensure_ascii=False).encode()
    packed = data if compression == "none" else zstandard.ZstdCompressor().compress(data)
    more = {
        "version": "1", "field-dict": packed.decode("latin-1"), "field-dict-compression": compression,
        "field-dict-original-size": str(len(data)), **(said or {}),
    }  # fmt: skip
    metadata = {"paimon.map.storage-layout": "shared-shredding"} | {PREFIX + name: text for name, text in more.items()}
    return pa.field("m", kind, metadata=metadata)


def stored(*rows):
    """Rows of ({place: (number, value)}, {number: value}) with two columns; None for no map."""
    kind = pa.struct([
        ("__field_mapping", pa.list_(pa.int32())), ("__col_0", pa.int64()), ("__col_1", pa.int64()),
        ("__overflow", pa.map_(pa.int32(), pa.int64())),
    ])  # fmt: skip
    made = []
    for row in rows:
        if row is not None:
            places, beside = row
            mapping = [places.get(place, (-1, None))[0] for place in range(max(places, default=-1) + 1)]
            columns = {f"__col_{place}": places.get(place, (-1, None))[1] for place in range(2)}
            row = {"__field_mapping": mapping, **columns, "__overflow": list(beside.items())}
        made.append(row)
    return pa.array(made, kind)


def maps(array, keys):
    found = as_map(array, keys, KIND, TARGET, lambda leaf, kind, target: leaf.cast(target))
    found.validate(full=True)
    return [row if row is None else dict(row) for row in found.to_pylist()]


def no_stamps(kind):
    return ()


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_values_are_found_in_their_columns_and_beside_them(compression):
    array = stored(
        ({0: (7, 70), 1: (0, 1)}, {3: 30, 1: None}), None, ({}, {}), ({1: (3, None)}, {}), ({}, {7: 71}), ({0: (0, 2)}, {7: 72}),
    )  # fmt: skip
    keys = shared_keys(field(array.type, compression), KIND, no_stamps)
    wanted = [{"late": 70, "a": 1, "ü": 30, "b": None}, None, {}, {"ü": None}, {"late": 71}, {"a": 2, "late": 72}]
    assert maps(array, keys) == wanted
    for start in range(len(wanted)):
        assert maps(array.slice(start, 2), keys) == wanted[start : start + 2]
    assert maps(array.slice(0, 0), keys) == []


def test_keys_that_are_not_named_or_there_twice_are_damage():
    keys = shared_keys(field(stored().type), KIND, no_stamps)
    assert keys is not None and np.all(np.diff(keys.numbers) > 0)
    for row, word in (
        (({0: (2, 5)}, {}), "does not name"), (({}, {99: 5}), "does not name"),
        (({0: (3, 5)}, {3: 6}), "twice"), (({0: (3, 5), 1: (3, 6)}, {}), "twice"), (({0: (3, 5), 1: (0, 1)}, {3: 6}), "twice"),
        (({0: (0, 1), 1: (1, 1), 2: (3, 1)}, {}), "3 columns, and there are 2"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=word):
            maps(stored(({}, {}), row), keys)


def test_other_columns_are_none_and_other_layouts_are_refused():
    kind = stored().type
    assert shared_keys(pa.field("m", TARGET), KIND, no_stamps) is None
    assert shared_keys(field(kind), parse_type("BIGINT"), no_stamps) is None
    for wrong in ({"version": "2"}, {"field-dict-compression": "lz4"}):
        with pytest.raises(UnsupportedError, match="shared columns of version"):
            shared_keys(field(kind, said=wrong), KIND, no_stamps)
    for layout in (TARGET, pa.struct([kind.field(0), kind.field(2), kind.field(3)]), pa.struct(list(kind)[:3]),
                   pa.struct([*list(kind)[:3], pa.field("__overflow", pa.int64())])):  # fmt: skip
        with pytest.raises(ValueError, match="stored as"):
            shared_keys(field(layout), KIND, no_stamps)
