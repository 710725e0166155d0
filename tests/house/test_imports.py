"""What `import paimon_py` loads, and what plain reading and writing load beside it: see docs/decisions/0017-imports.md."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from house.package import nodes_of

import paimon_py
from paimon_py import Catalog, Schema

ROOT = Path(__file__).parents[2]

ELSEWHERE = {
    "IPython", "adlfs", "click", "datasketches", "duckdb", "fastavro", "fsspec", "gcsfs", "pandas", "polars", "pyarrow.dataset",
    "pyarrow.orc", "pyspark", "requests", "rich", "s3fs",
}  # fmt: skip
RARE = {
    "paimon_py.imports.verb", "paimon_py.queries.query", "paimon_py.cli", "paimon_py.doctor.checks", "paimon_py.doctor.gather", "paimon_py.metadata.level_files",
    "paimon_py.codec.file_index.answer", "paimon_py.codec.manifest.copy", "paimon_py.commit.compact_manifests",
    "paimon_py.compaction.compact", "paimon_py.compaction.index_rewrite", "paimon_py.compaction.run",
    "paimon_py.expr.sql", "paimon_py.expr.sql_intervals", "paimon_py.expr.calculate", "paimon_py.expr.value_test", "paimon_py.files.casts.rules", "paimon_py.formats.avro.format", "paimon_py.formats.orc.format",
    "paimon_py.lsm.aggregates", "paimon_py.lsm.engines.aggregation", "paimon_py.lsm.engines.first_row",
    "paimon_py.lsm.engines.lookup", "paimon_py.lsm.engines.partial_update", "paimon_py.lsm.external_sort",
    "paimon_py.compaction.rewrite", "paimon_py.maintain.publish_postponed", "paimon_py.maintain.rescale",
    "paimon_py.rows.live_keys", "paimon_py.lookup.lookups", "paimon_py.iceberg.observer", "paimon_py.rows.verbs", "paimon_py.scan.top_n",
    "paimon_py.spark", "paimon_py.spec.changed_schema", "paimon_py.spec.validation", "paimon_py.storage.fsspec_store",
    "paimon_py.scan.change_plan", "paimon_py.scan.diff_plan", "paimon_py.scan.diff_read", "paimon_py.system.table",
    "paimon_py.expr.foreign", "paimon_py.expr.from_arrow", "paimon_py.scan.dataset", "paimon_py.scan.lazy_polars",
    "paimon_py.scan.seen_plan", "paimon_py.types", "paimon_py.write.listed_rows",
    "paimon_py.testing", "paimon_py.write.dynamic", "paimon_py.write.cross_partition", "paimon_py.write.postponed_writer",
}  # fmt: skip
WRITING = {
    "paimon_py.commit.commit", "paimon_py.compaction.plan", "paimon_py.files.writer", "paimon_py.formats.parquet.write",
    "paimon_py.lsm.writer", "paimon_py.metadata.idle_warning", "paimon_py.table.writing", "paimon_py.write.session",
}  # fmt: skip

READING = {
    "paimon_py.codec.manifest.entries", "paimon_py.codec.partition_choice", "paimon_py.expr.bind", "paimon_py.files.reader",
    "paimon_py.formats.registry", "paimon_py.lsm.merge", "paimon_py.metadata.manifests", "paimon_py.scan.scan",
}  # fmt: skip


def loaded(code: str) -> set[str]:
    """Modules of a fresh interpreter after some code."""
    code = f"import json, sys, paimon_py; from paimon_py import Catalog\n{code}\n"
    code += "print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(json.loads(done.stdout))


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("warehouse"))
    catalog = Catalog.open(path)
    catalog.create_database("d")
    columns = Schema([("k", "BIGINT NOT NULL"), ("v", "STRING")])
    catalog.create_table("d.plain", columns)
    catalog.create_table("d.keyed", columns, primary_key=["k"], options={"bucket": "1"})
    for name in ("d.plain", "d.keyed"):
        for value in ("a", "b"):
            catalog.table(name).write_arrow(pa.table({"k": [1, 2], "v": [value, value]}))
    return path


def test_the_names_that_must_not_load_exist():
    files = {path.relative_to(ROOT).with_suffix("").as_posix() for path in (ROOT / "paimon_py").rglob("*.py")}
    known = {name.removesuffix("/__init__").replace("/", ".") for name in files}
    assert (RARE | READING | WRITING) - known == set()


def test_no_class_has_bases_that_python_3_10_refuses():
    found = []
    for path in sorted((ROOT / "paimon_py").rglob("*.py")):
        for node in nodes_of(path):
            bases = [base.id for base in getattr(node, "bases", []) if isinstance(base, ast.Name)]
            if "NamedTuple" in bases and len(node.bases) > 1:
                found.append(f"{path.relative_to(ROOT)}:{node.name}")
    assert found == []


def test_import_loads_neither_reading_nor_writing():
    assert loaded("") & (ELSEWHERE | RARE | READING | WRITING) == set()


@pytest.mark.parametrize("table", ["d.plain", "d.keyed"])
def test_a_scan_loads_nothing_rare_and_nothing_that_writes(warehouse, table):
    code = f"rows = Catalog.open({warehouse!r}).table({table!r}).scan(where=paimon_py.col('k') == 1).to_arrow()"
    found = loaded(f"{code}; assert rows['v'].to_pylist()[-1] == 'b'")
    assert found & (ELSEWHERE | RARE | WRITING) == set()
    assert found >= READING - {"paimon_py.lsm.merge"}


@pytest.mark.parametrize("table", ["d.plain", "d.keyed"])
def test_a_write_loads_nothing_rare(warehouse, table):
    found = loaded(f"table = Catalog.open({warehouse!r}).table({table!r}); table.write_arrow(table.scan().to_arrow())")
    assert found & (ELSEWHERE | RARE) == set()
    assert found >= WRITING - {"paimon_py.compaction.plan"}


def test_looking_at_every_public_name_loads_no_pyspark():
    assert "pyspark" not in loaded("from paimon_py import *; import inspect; inspect.getmembers(paimon_py)")


def test_names_that_load_later_are_the_classes_of_their_modules():
    from paimon_py.lsm.writer import LSMWriter

    assert paimon_py.LSMWriter is LSMWriter
    assert "LSMWriter" in dir(paimon_py) and "convert_to_spark" in dir(paimon_py)
    with pytest.raises(AttributeError, match="no attribute 'LSMwriter'"):
        _ = paimon_py.LSMwriter
