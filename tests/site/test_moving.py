"""Programs that move tables from other libraries run, with the libraries that they name."""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path

import pyarrow as pa
import pytest

from benchmarks.environments import interpreter
from paimon_py import Catalog

pytestmark = pytest.mark.full
ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "docs" / "moving"
BOTH = """
import runpy, sys
sys.path[:0] = {first}
sys.path.append({ours})
sys.argv = {arguments}
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Runs a program in a peer's environment, which has none of paimon_py's dependencies."""


def moved(peer, program, *arguments):
    """What a program prints that needs a peer and paimon_py."""
    code = BOTH.format(
        first=[str(PROGRAMS), str(ROOT)],
        ours=repr(sysconfig.get_paths()["purelib"]),
        arguments=[str(PROGRAMS / program), *map(str, arguments)],
    )
    return run(peer, code)


def run(peer, code):
    done = subprocess.run([interpreter(peer), "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


ROWS = 'pa.table({"id": pa.array(range(1000), pa.int64()), "city": ["Ulm", None] * 500, "price": [0.5] * 1000})'


def test_a_delta_table_is_copied(tmp_path):
    write = f'import pyarrow as pa, deltalake\nfor _ in range(2): deltalake.write_deltalake({str(tmp_path / "t")!r}, {ROWS}, mode="overwrite")'
    run("delta", write)
    said = moved("delta", "from_deltalake.py", tmp_path / "t", tmp_path / "w", "d.t", "--key", "id")
    assert "1000 rows are the same" in said
    assert Catalog.open(str(tmp_path / "w")).table("d.t").scan(where="city IS NULL").count() == 500


def test_an_iceberg_table_is_copied(tmp_path):
    write = f"""
import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
catalog = SqlCatalog("c", uri="sqlite:///{tmp_path}/c.db", warehouse="file://{tmp_path}/i")
catalog.create_namespace("d")
rows = {ROWS}
table = catalog.create_table("d.t", rows.schema)
table.append(rows)
table.delete("id < 10")
print(table.metadata_location)
"""
    place = run("iceberg", write).strip().splitlines()[-1]
    said = moved("iceberg", "from_pyiceberg.py", place, tmp_path / "w", "d.t", "--key", "id")
    assert "990 rows are the same" in said
    table = Catalog.open(str(tmp_path / "w")).table("d.t")
    assert table.schema.primary_keys == ("id",) and table.scan().to_arrow().schema.field("price").type == pa.float64()


def test_pypaimon_and_paimon_py_share_a_table(tmp_path):
    assert "4 rows are the same for both" in moved("pypaimon", "beside_pypaimon.py", tmp_path / "w")
