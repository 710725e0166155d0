"""Java's connector and our adapter write to one table in turns, in one Spark; both read the same rows, by batch and as streams."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from engine_tables import SHAPES

pytest.importorskip("pyspark", reason="the Spark adapter needs pyspark")

ROOT = Path(__file__).parents[2]
LAUNCHERS = ROOT.parent / "shared" / "engines"
WORKS = ("streams", "streams_keyed", "sink", "places")
FOLLOWED = {"streams": "followed", "streams_keyed": "followed_keyed"}
KINDS = [name for name in SHAPES if re.fullmatch("(append|keyed|keyed_parted|vectors|nested|partial|first|aggregated|evolved_keyed)_(parquet|orc|avro)|hashed|moving|postponed", name)]
KNOWN = {"postponed": "number of buckets needs to be greater than 0"}
"""What Paimon 0.9 does not have, and how it says so."""

pytestmark = [pytest.mark.java, pytest.mark.spark, pytest.mark.full, pytest.mark.timeout(3600)]


@functools.cache
def answers():
    """What the program says of each table: None where all was well."""
    if shutil.which("java") is None or not LAUNCHERS.is_dir():
        pytest.skip("needs Java 17, and the launchers of other engines beside the project")
    found = subprocess.run([sys.executable, "cache.py", "jars", "spark-3.5-paimon"], cwd=LAUNCHERS, capture_output=True, text=True, check=False)
    jars = sorted(Path(found.stdout.strip() or ".").glob("paimon-spark-3.5-*.jar"))
    if not jars:
        pytest.skip(f"the connector cannot be had here: {found.stderr[-300:]}")
    path = os.pathsep.join(map(str, (ROOT, ROOT / "tests", ROOT / "tests" / "golden", ROOT / "tests" / "interop", ROOT / "tests" / "interop" / "oracle")))
    environment = {**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable, "TZ": "UTC"}
    warehouse = tempfile.mkdtemp(prefix="beside-java-")
    try:
        program = str(ROOT / "tests" / "interop" / "spark_beside_java.py")
        done = subprocess.run([sys.executable, program, warehouse, str(jars[-1]), *WORKS, *KINDS], env=environment, capture_output=True, text=True, check=False)
        told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"name"')]
        assert len(told) == len(WORKS) + len(KINDS), done.stderr[-2000:]
        made = {one["name"]: one for one in told}
        flink = by_flink(warehouse, {name: len(made[name]["found"]) for name in FOLLOWED if made[name]["found"]})
    finally:
        shutil.rmtree(warehouse, ignore_errors=True)
    return {**{name: one["error"] for name, one in made.items()}, "flink": [(flink.get(name), made[name]["found"]) for name in FOLLOWED]}


def by_flink(warehouse, counts):
    """The changes that Flink's streaming job sees in tables, from their first snapshot on; nothing where there is no Flink."""
    start = "/*+ OPTIONS('scan.mode'='from-snapshot','scan.snapshot-id'='1') */"
    queries = [f"@take {count} 300 SELECT k, v FROM {FOLLOWED[name]} {start}" for name, count in counts.items()]
    command = [sys.executable, "flink_sql.py", "--warehouse", warehouse, "--parallelism", "1", "--keep-going", "@streaming", *queries]
    done = subprocess.run(command, cwd=LAUNCHERS, capture_output=True, text=True, check=False)
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"statement"')][-len(queries) :]
    return {
        name: sorted(repr((kind, *row)) for kind, row in zip(one["kinds"], one["rows"], strict=True)) if one["ok"] else one["error"]
        for name, one in zip(counts, told, strict=False)
    }


def test_flinks_streaming_job_follows_what_spark_wrote():
    found = answers()["flink"]
    if all(theirs is None for theirs, _ in found):
        pytest.skip("Flink cannot be had here")
    for theirs, ours in found:
        assert theirs == ours


@pytest.mark.parametrize("name", [*WORKS, *KINDS])
def test_java_and_we_write_in_turns_in_one_spark(name):
    error = answers()[name]
    if name in KNOWN:
        assert error, "works now"
        assert KNOWN[name] in error
    else:
        assert error is None, error
