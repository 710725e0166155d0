"""Few keys are looked for on pages of files, and found again in what was kept of them; against a dict."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from unit.scan.build import table

from paimon_py.lookup import files as lookup_files
from paimon_py.table import Table

ROWS = 6000
PAGES = {"bucket": "1", "write-only": "true", "parquet.page.size": "3000", "parquet.enable.dictionary": "false"}
NUMBER, TEXT = pa.int64(), pa.string()
KEYS = {
    "numbers": ([("k", NUMBER)], lambda n: {"k": 3 * n}),
    "texts": ([("k", TEXT)], lambda n: {"k": f"key {n:07}" + "x" * (n % 40)}),
    "pairs": ([("a", NUMBER), ("b", TEXT)], lambda n: {"a": n // 700, "b": f"{n * 7919 % ROWS}"}),
}


@pytest.fixture(autouse=True)
def small_files_have_pages(monkeypatch):
    monkeypatch.setattr(lookup_files, "PAGED_ROWS", 1000)


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("engine", ["deduplicate", "partial-update"])
def test_few_keys_are_found_by_pages_and_then_in_the_cache(kind, engine):
    draw = random.Random(kind + engine)
    fields, key_of = KEYS[kind]
    shape = pa.schema([*(pa.field(name, type_, False) for name, type_ in fields), ("v", TEXT), ("n", NUMBER)])
    columns = [(name, "BIGINT NOT NULL" if type_ == NUMBER else "STRING NOT NULL") for name, type_ in fields]
    store = table(
        [*columns, ("v", "STRING"), ("n", "BIGINT")],
        options={**PAGES, "merge-engine": engine},
        primary_key=[name for name, _ in fields],
    )
    model = {}
    for version in range(3):
        numbers = draw.sample(range(ROWS), ROWS // (1 + version))
        texts = [f"{version} {n} " * (1 + n % 9) for n in numbers]
        rows = [{**key_of(n), "v": text, "n": n} for n, text in zip(numbers, texts, strict=True)]
        store.write_arrow(pa.Table.from_pylist(rows, shape))
        model |= dict(zip(numbers, texts, strict=True))
    for step in range(16):
        if step % 4 == 0:
            fresh = Table(store._root, store.schema, "db.t")
        asked = draw.sample(range(-50, ROWS + 50), draw.choice((1, 3, 20, 200)) if step % 4 else 1 + step % 3)
        found = fresh.lookup([key_of(n) for n in asked], columns=["v", "n"]).to_pylist()
        assert found == [{"v": model[n], "n": n} for n in asked if n in model]


def test_one_key_needs_few_pages_of_its_files():
    store = table([("k", "BIGINT NOT NULL"), ("v", "STRING")], options=PAGES, primary_key=["k"])
    for run in range(2):
        keys = range(run, 2 * ROWS, 2)
        store.write_arrow(
            pa.table({"k": pa.array(keys), "v": [f"{key} {key * 7919}" for key in keys]}).cast(
                pa.schema([pa.field("k", NUMBER, False), ("v", TEXT)])
            )
        )
    assert store.lookup([7001]).column("v").to_pylist() == [f"7001 {7001 * 7919}"]
    one = store._lookups.nbytes
    assert store.lookup(pa.array(range(0, 2 * ROWS, 3))).num_rows == ROWS * 2 // 3
    assert one < store._lookups.nbytes / 3
