"""Random lives of tables, written by us and read, filtered, upserted and compacted by Java, and the other way round."""

from __future__ import annotations

import random

import golden
import pytest
from filters import predicate
from lives import Life, life, maybe, plain_zeros
from values import Model, arrow_rows, canonical_rows, difference, ours

from paimon_py import Catalog, Schema

pytestmark = pytest.mark.java

SEEDS = [*range(1, 11), 113, 271, 828, 1828]
MORE_SEEDS = range(11, 111)


def version_of(seed: int, lived: Life) -> str:
    """One of three Javas, or 2.0.0 where the others have faults of their own.

    Both order FLOAT and DOUBLE keys by `<` (NaN equals everything, #8295) and a write buffer never descending (#7684).
    0.9 ignores bucket functions, reads counts of MULTISETs wrong and takes rows of nulls for null, in its own files too.
    """
    version = ("2.0.0", "1.4.2", "2.0.0", "0.9.0")[seed % 4]
    counted = any("MULTISET" in str(kind) or "ROW" in str(kind) for _, kind in lived.columns)
    real = any(kind in ("FLOAT NOT NULL", "DOUBLE NOT NULL") for name, kind in lived.columns if name in lived.primary_key)
    new = counted or "bucket-function.type" in lived.options
    descending = "sequence.field.sort-order" in lived.options
    return "2.0.0" if real or descending or (version == "0.9.0" and new) else version


def read(java, warehouse, columns, **extra):
    step = {"op": "read", "table": "db.t", **extra}
    return canonical_rows(columns, java.run(str(warehouse), [step], check=True)[0]["result"])


def our_table(warehouse, lived: Life):
    catalog = Catalog.open(str(warehouse))
    catalog.create_database("db", exist_ok=True)
    schema = Schema([(name, kind) for name, kind in lived.columns])
    return catalog.create_table(
        "db.t", schema, primary_key=lived.primary_key, partition_by=lived.partition_by, options=lived.options
    )


def java_create(lived: Life) -> dict:
    return {
        "op": "create",
        "table": "db.t",
        "columns": lived.columns,
        "primaryKeys": lived.primary_key,
        "partitionKeys": lived.partition_by,
        "tableOptions": lived.options,
    }


def check_filters(table, lived: Life, model: Model, java=None, warehouse=None):
    types = {name: golden.parse_type(kind) for name, kind in lived.columns}
    names = [name for name, _ in lived.columns]
    for tree in lived.filters:
        rows = [row for row in model.expected() if golden.matches(dict(zip(names, row)), tree, types)]
        got = ours(lived.columns, table.scan(where=predicate(tree, types)).to_arrow())
        assert difference(lived.columns, rows, got) is None, f"ours {tree}"
        if java is not None:
            pruned = read(java, warehouse, lived.columns, filter=tree)
            found = [row for row in pruned if golden.matches(dict(zip(names, row)), tree, types)]
            assert difference(lived.columns, rows, found) is None, f"Java lost rows of {tree}"


def more_rows(lived: Life, count: int) -> list[dict]:
    rng = random.Random(lived.seed + 10_000)
    seen = [row for rows in lived.writes for row in rows]
    rows = []
    for _ in range(count):
        base = dict(rng.choice(seen))
        base.pop("_kind", None)
        row = base | {name: maybe(rng, kind) for name, kind in lived.columns if name.startswith("v")}
        rows.append(plain_zeros(row, lived.options["file.format"]))
    return rows


@pytest.mark.parametrize("seed", [*SEEDS, *(pytest.param(seed, marks=pytest.mark.full) for seed in MORE_SEEDS)])
def test_java_reads_filters_upserts_and_compacts_what_we_write(seed, java, tmp_path):
    lived = life(seed)
    session = java(version_of(seed, lived))
    table = our_table(tmp_path, lived)
    model = Model(lived.columns, lived.primary_key, lived.options)
    for rows in lived.writes:
        table.write_arrow(arrow_rows(table.schema, lived.columns, rows, kinds=bool(lived.primary_key)))
        model.write(rows)
    assert difference(lived.columns, model.expected(), ours(lived.columns, table.scan().to_arrow())) is None, "ours"
    assert difference(lived.columns, model.expected(), read(session, tmp_path, lived.columns)) is None, lived.about
    filtered = "0.9.0" not in version_of(seed, lived)
    check_filters(table, lived, model, session if filtered else None, tmp_path)

    rows = more_rows(lived, 5)
    compact = {"options": {"write-only": "false"}, "compact": "full"} if lived.primary_key else {}
    session.run(str(tmp_path), [{"op": "write", "table": "db.t", "rows": rows, **compact}], check=True)
    model.write(rows)
    assert difference(lived.columns, model.expected(), read(session, tmp_path, lived.columns)) is None, "Java after compaction"
    assert difference(lived.columns, model.expected(), ours(lived.columns, table.scan().to_arrow())) is None, "ours after Java"


@pytest.mark.parametrize("seed", [*SEEDS, *(pytest.param(seed, marks=pytest.mark.full) for seed in MORE_SEEDS)])
def test_we_read_filter_and_upsert_what_java_writes(seed, java, tmp_path):
    lived = life(seed + 500)
    session = java(version_of(seed, lived))
    writes = [{"op": "write", "table": "db.t", "rows": rows, "id": i + 1} for i, rows in enumerate(lived.writes)]
    session.run(str(tmp_path), [java_create(lived), *writes], check=True)
    table = Catalog.open(str(tmp_path)).table("db.t")
    model = Model(lived.columns, lived.primary_key, lived.options)
    made = {snapshot.commit_identifier: snapshot.id for snapshot in table.snapshots()}
    for number, rows in enumerate(lived.writes, 1):
        model.write(rows)
        if number not in made:  # all of it ignored deletes
            continue
        got = ours(lived.columns, table.scan(snapshot_id=made[number]).to_arrow())
        assert difference(lived.columns, model.expected(), got) is None, f"snapshot {number}: {lived.about}"
    check_filters(table, lived, model)

    rows = more_rows(lived, 6)
    table.write_arrow(arrow_rows(table.schema, lived.columns, rows))
    model.write(rows)
    assert difference(lived.columns, model.expected(), read(session, tmp_path, lived.columns)) is None, "Java after ours"
    compact = {"op": "compact", "table": "db.t", "options": {"write-only": "false"}}
    session.run(str(tmp_path), [compact], check=True)
    assert difference(lived.columns, model.expected(), read(session, tmp_path, lived.columns)) is None, "Java compacted"
    assert difference(lived.columns, model.expected(), ours(lived.columns, table.scan().to_arrow())) is None, "ours at last"
