"""Keys of many files in one list, against a dict; and hashes that are not proof."""

from __future__ import annotations

import random
from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pytest
from unit.scan.build import opened, table

from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.lookup import key_index
from paimon_py.lookup.key_index import EncodedKeys, can_index, extend, key_words
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import Field

VALUES = {
    "BOOLEAN": [False, True],
    "TINYINT": list(range(-128, 128, 5)),
    "SMALLINT": list(range(-32768, 32768, 999)),
    "INT": list(range(-(2**31), 2**31, 2**25)),
    "BIGINT": list(range(-(2**63), 2**63, 2**57)),
    "FLOAT": [-1.5, -0.0, 0.0, 1.5, float("nan")],
    "DOUBLE": [float("-inf"), -1.5, -0.0, 0.0, 1e-300, 1.5, float("nan")],
    "DATE": [date(1900 + year, 2, 3) for year in range(200)],
    "TIMESTAMP(6)": [datetime(1900 + year, 2, 3, 4, 5, 6, year) for year in range(200)],
    "STRING": [f"{number}" for number in range(300)],
}
SURE = [("BIGINT",), ("INT", "INT"), ("BOOLEAN", "DATE", "TINYINT"), ("DOUBLE",), ("FLOAT",), ("TIMESTAMP(6)",)]
HASHED = [("STRING",), ("BIGINT", "INT"), ("STRING", "SMALLINT")]


def fields_of(kinds):
    return tuple(Field(at, f"k{at}", parse_type(f"{kind} NOT NULL")) for at, kind in enumerate(kinds))


def words_of(keys, fields):
    schema = to_arrow_schema(fields)
    columns = [pa.array([key[at] for key in keys], kind) for at, kind in enumerate(schema.types)]
    return key_words(columns, fields)


@pytest.mark.parametrize("kinds", [*SURE, *HASHED])
@pytest.mark.parametrize("has_cells", [False, True])
def test_an_index_finds_every_row_while_files_are_added_and_removed(kinds, has_cells, monkeypatch):
    monkeypatch.setattr(key_index, "_MANY", 1 if has_cells else 1 << 30)
    draw = random.Random(str(kinds))
    fields = fields_of(kinds)
    assert can_index(fields)
    drawn = {repr(key): key for key in (tuple(draw.choice(VALUES[kind]) for kind in kinds) for _ in range(400))}
    keys = list(drawn.values())
    sure = kinds in SURE
    ordered = [keys[at] for at in np.argsort(words_of(keys, fields), kind="stable").tolist()]
    files: dict[str, list] = {}
    index = None
    for step in range(12):
        for name in draw.sample(list(files), len(files) // 3):
            del files[name]
        new = {f"file {step} {at}": [key for key in ordered if draw.random() < 0.3] for at in range(draw.randrange(1, 3))}
        files |= new
        index = extend(index, [EncodedKeys(name, words_of(held, fields)) for name, held in new.items()], files, fields)
        assert set(index.names) == set(files)
        assert index.row_count == sum(map(len, files.values()))
        assert index.is_sure == sure
        asked = draw.sample(keys, min(len(keys), 60))
        found = index.locate(words_of(asked, fields))
        for name, held in files.items():
            places = {repr(key): at for at, key in enumerate(held)}
            expected = sorted((places[repr(key)], at) for at, key in enumerate(asked) if repr(key) in places)
            assert list(zip(found[name].positions.tolist(), found[name].keys.tolist(), strict=True)) == expected


@pytest.mark.parametrize("spread", [1, 3, 2**10, 2**20, 2**32 - 1])
def test_cells_locate_words_of_any_distribution(spread, monkeypatch):
    monkeypatch.setattr(key_index, "_MANY", 1)
    draw = np.random.default_rng(spread)
    fields = fields_of(["BIGINT"])
    near = np.unique(draw.integers(0, spread, 300))
    names = {name: np.sort(np.append(draw.choice(near, len(near) // 2, replace=False), 2**32 - 1 - at)) for at, name in enumerate("ab")}
    index = extend(None, [EncodedKeys(name, words.astype(np.uint64)) for name, words in names.items()], names, fields)
    assert (index.cells is None) == (index.words.dtype != np.uint32)
    asked = np.unique(np.concatenate([near, near + 1, draw.integers(0, 2**33, 50), [0, 2**32 - 1, 2**32 - 2]])).astype(np.uint64)
    found = index.locate(asked)
    for name, words in names.items():
        places = {int(word): at for at, word in enumerate(words.tolist())}
        expected = sorted((places[word], at) for at, word in enumerate(asked.tolist()) if word in places)
        assert list(zip(found[name].positions.tolist(), found[name].keys.tolist(), strict=True)) == expected


def test_words_of_keys_preserve_their_order():
    for kind in ("TINYINT", "SMALLINT", "INT", "BIGINT", "DATE", "DOUBLE"):
        fields = fields_of([kind])
        words = words_of([(value,) for value in VALUES[kind]], fields)
        assert (words[1:] > words[:-1]).all()
    ends = [(-(2**63),), (-1,), (0,), (2**63 - 1,)]
    index = extend(None, [EncodedKeys("a", words_of(ends, fields_of(["BIGINT"])))], [], fields_of(["BIGINT"]))
    assert index.locate(words_of(ends, fields_of(["BIGINT"])))["a"].positions.tolist() == [0, 1, 2, 3]
    near = [(2**63 - 2,), (2**63 - 1,)]
    index = extend(None, [EncodedKeys("a", words_of(near, fields_of(["BIGINT"])))], [], fields_of(["BIGINT"]))
    assert index.words.dtype == np.uint32
    far = [(-(2**63),), (2**63 - 2 - 2**32,), (2**63 - 1,)]
    assert index.locate(words_of(far, fields_of(["BIGINT"])))["a"].keys.tolist() == [2]


def test_composite_keys_with_nan_are_not_indexed():
    assert not can_index(fields_of(["DOUBLE", "INT"]))
    assert not can_index(fields_of(["STRING", "FLOAT"]))
    assert can_index(fields_of(["STRING", "INT"]))


def twins():
    """Two texts with one hash."""
    fields = fields_of(["STRING"])
    texts = [f"t{number}" for number in range(200_000)]
    hashes = words_of([(text,) for text in texts], fields)
    order = np.argsort(hashes, kind="stable")
    at = int(np.flatnonzero(hashes[order][1:] == hashes[order][:-1])[0])
    return texts[order[at]], texts[order[at + 1]]


def test_keys_with_the_same_hash_are_not_confused():
    one, other = twins()
    store = table(
        [("k", "STRING NOT NULL"), ("v", "INT")], primary_key=("k",), options={"bucket": "1", "write-only": "true"}
    )
    schema = pa.schema(store.scan().schema)
    store.write_arrow(pa.Table.from_pylist([{"k": one, "v": 1}, {"k": "z", "v": 2}], schema))
    for _ in range(4):
        assert store.lookup([other, one, "z"]).column("v").to_pylist() == [1, 2]
    assert list(store._lookups._frames._indexes.values())[0].row_count == 2
    found = store.lookup([other, one, "z"], missing="null")
    assert list(zip(found["k"].to_pylist(), found["v"].to_pylist(), strict=True)) == [(other, None), (one, 1), ("z", 2)]
    store.write_arrow(pa.Table.from_pylist([{"k": other, "v": 3}], schema))
    for _ in range(4):
        assert store.lookup([other, one, "z"]).column("v").to_pylist() == [3, 1, 2]
    assert list(store._lookups._frames._indexes.values())[0].row_count == 3
    store._root.store.reset()
    store.lookup([other, one])
    assert opened(store) == []
    found = store.lookup([other, one, "z", "nothing"], missing="null")
    assert found.select(["k", "v"]).to_pylist() == [{"k": other, "v": 3}, {"k": one, "v": 1}, {"k": "z", "v": 2}, {"k": "nothing", "v": None}]
