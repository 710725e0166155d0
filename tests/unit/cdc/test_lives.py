"""Random lives of a source table, in steps that are repeated, against a dictionary."""

from __future__ import annotations

import json
import random

import pytest

from paimon_py import Catalog
from paimon_py.cdc import Event, Sink


def field(name, kind="int64"):
    return {"field": name, "type": kind}


def happening(rng, model, names, kind):
    """One event of one of six keys, which the model follows; `before` is there or not."""
    key = rng.randrange(6)
    old = model.get(key)
    after = {name: rng.randrange(100) for name in names} | {"id": key}
    before = {name: old.get(name) for name in names} if old and rng.random() < 0.5 else None
    if old and rng.random() < 0.3:
        model.pop(key)
        payload = {"op": "d", "before": before, "after": None}
    else:
        model[key] = after
        payload = {"op": "u" if old else "c", "before": before, "after": after}
    columns = [field(name, kind if name == "v" else "int64") for name in names]
    value = {"schema": {"fields": [{"field": "after", "fields": columns}]}, "payload": {**payload, "source": {"table": "t"}}}
    return Event(
        value=json.dumps(value).encode(),
        key=json.dumps({"schema": {"fields": [field("id")]}, "payload": {"id": key}}).encode(),
    )


@pytest.mark.parametrize("seed", range(4))
def test_a_table_ends_as_its_source(tmp_path, seed):
    rng, catalog = random.Random(seed), Catalog.open(str(tmp_path / "wh"))
    options = {"bucket": ("1", "2", "-1")[seed % 3], "changelog-producer": ("none", "input")[seed % 2]}
    sink = Sink(catalog, "lake", user="u", options=options)
    model, names, kinds = {}, ["id", "v"], ["int16", "int32", "int64"]
    for identifier in range(12):
        events = []
        for _ in range(rng.randrange(1, 15)):
            if rng.random() < 0.05:
                names = [*names, f"c{len(names)}"]
            shape = names if rng.random() < 0.8 else names[:2]
            kind = rng.choice(kinds[: 1 + identifier // 4])
            events.append(happening(rng, model, shape, kind))
        for _ in range(rng.choice([1, 2])):
            assert sink.write(events, identifier=identifier).dead == 0
    table = catalog.table("lake.t")
    expected = {key: {name: row.get(name) for name in table.schema.names} for key, row in model.items()}
    assert {row["id"]: row for row in table.to_arrow().to_pylist()} == expected
