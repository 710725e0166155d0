"""Maps that Java keeps in shared columns: we read the same maps."""

from __future__ import annotations

import random

import pytest
from pair import Kind, Pair

from paimon_py import UnsupportedError

pytestmark = pytest.mark.java

VALUES = {
    "a": ("BIGINT", lambda rng: rng.randrange(9)),
    "b": ("STRING", lambda rng: rng.choice(["", "x", "ü"])),
    "c": ({"type": "ARRAY", "element": "INT"}, lambda rng: [1, None][: rng.randrange(3)]),
    "e": ("TIMESTAMP(3)", lambda rng: "2020-01-02T03:04:05.678"),
    "f": ("DECIMAL(20, 2)", lambda rng: "1.25"),
    "g": ({"type": "ROW", "fields": [{"id": 0, "name": "x", "type": "INT"}]}, lambda rng: {"x": rng.randrange(3)}),
}


def play(java, tmp_path, seed: int) -> None:
    rng = random.Random(seed)
    pair, keyed = Pair(java("2.0.0"), tmp_path), seed % 2
    options = {"bucket": "1" if keyed else "-1", "file.format": rng.choice(["parquet", "orc"])}
    for name in VALUES:
        options[f"fields.{name}.map.storage-layout"] = "shared-shredding"
        options[f"fields.{name}.map.shared-shredding.max-columns"] = str(rng.randrange(1, 5))
        options[f"fields.{name}.map.shared-shredding.column-placement-policy"] = rng.choice(["lru", "plain", "sequential"])
    maps = [[name, {"type": "MAP", "key": "STRING NOT NULL", "value": kind}] for name, (kind, _) in VALUES.items()]
    pair.create(Kind([["k", "INT NOT NULL"], *maps], ["k"] if keyed else [], [], options), "j")

    def some(name: str):
        if rng.random() < 0.15:
            return None
        return [[f"k{key}", None if rng.random() < 0.2 else VALUES[name][1](rng)] for key in rng.sample(range(8), rng.randrange(7))]

    for _ in range(3):
        pair.step("write", rows=[{"k": rng.randrange(200), **{name: some(name) for name in VALUES}} for _ in range(rng.randrange(1, 60))])
        pair.agree()
    with pytest.raises(UnsupportedError, match="shared-shredding"):
        pair.table().write_arrow([])


@pytest.mark.parametrize("seed", range(4))
def test_maps_in_shared_columns_are_those_of_java(java, tmp_path, seed):
    play(java, tmp_path, seed)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(10, 40))
def test_many_maps_in_shared_columns(java, tmp_path, seed):
    play(java, tmp_path, seed)
