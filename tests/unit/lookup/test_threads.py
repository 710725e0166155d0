"""Lookups of one table object in several threads, while others commit: every answer is of one snapshot."""

from __future__ import annotations

import random
import sys
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from paimon_py.env import Env, SerialPool
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.new_schema import Schema, TableSpec, new_table_schema
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.table import Table

KEYS = 120
COMMITS = 12


@pytest.fixture(autouse=True)
def _switching():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def rows_of(table, version, keys):
    schema = pa.schema(table.scan().schema)
    return pa.Table.from_pylist([{"k": f"key {key}", "version": version, "v": "x" * (key % 7)} for key in keys], schema)


@pytest.mark.parametrize(
    ("limit", "options"),
    [
        ("0 b", {}),
        ("6 kb", {"bucket": "2"}),
        ("6 kb", {"merge-engine": "partial-update"}),
        ("256 mb", {}),
        ("256 mb", {"deletion-vectors.enabled": "true", "write-only": "false"}),
    ],
)
def test_threads_that_share_a_table_object_see_whole_snapshots_that_never_go_back(limit, options):
    root = TableRoot(MemoryStore(), "/warehouse/db.db/t", Env(pool=SerialPool()))
    fields = [("k", "STRING NOT NULL"), ("version", "INT"), ("v", "STRING")]
    given = {"bucket": "1", "write-only": "true", "lookup.cache-max-memory-size": limit, **options}
    schema = new_table_schema(Schema(fields), TableSpec(primary_keys=("k",), options=given), time_millis=0)
    assert root.schemas.add(schema)
    shared = Table(root, schema, "db.t")
    shared.write_arrow(rows_of(shared, 0, range(KEYS)))
    done = []

    def write():
        try:
            for version in range(1, COMMITS + 1):
                Table(root, schema, "db.t").write_arrow(rows_of(shared, version, range(KEYS)))
                if version % 4 == 0:
                    Table(root, schema, "db.t").compact(full=True)
        finally:
            done.append(True)

    def read(seed):
        draw = random.Random(seed)
        seen = [0]
        while True:
            last = bool(done)
            keys = draw.sample(range(KEYS + 5), draw.choice([1, 8, 100]))
            found = shared.lookup([f"key {key}" for key in keys])
            held = [key for key in keys if key < KEYS]
            assert found.column("k").to_pylist() == [f"key {key}" for key in held]
            assert found.column("v").to_pylist() == ["x" * (key % 7) for key in held]
            versions = set(found.column("version").to_pylist())
            assert len(versions) <= 1
            seen += versions
            if last:
                return seen

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read, seed) for seed in range(3)]
        pool.submit(write).result(timeout=300)
        answers = [reader.result(timeout=300) for reader in readers]
    assert all(seen == sorted(seen) for seen in answers)
    assert shared._lookups.nbytes <= shared._lookups._frames.max_bytes
    assert set(shared.lookup([f"key {key}" for key in range(KEYS)]).column("version").to_pylist()) == {COMMITS}
