"""Flink, Spark, Hive and Trino beside us on one warehouse: they read ours, we read theirs, in turns.

What an engine is known not to do stands in `KNOWN` and in docs/engines.md; all else must be equal, statement by statement.
An engine that cannot be fetched or started is skipped by name. `PAIMON_ENGINE_REPORT` names a file for the counts.
"""

from __future__ import annotations

import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import engine_tables
import pytest
from engine_tables import SHAPES, Shape, copy_of_a_row, create, expected, more, normal, open_table, selects

pytestmark = [pytest.mark.java, pytest.mark.full, pytest.mark.timeout(3600)]

LAUNCHERS = pathlib.Path(__file__).parents[2].parent / "shared" / "engines"
ENGINES = {
    "flink": ["flink_sql.py", "--parallelism", "1"],
    "spark-3.5": ["spark_sql.py", "--spark", "3.5", "--released"],
    "spark-4.0": ["spark_sql.py", "--spark", "4.0"],
    "hive": ["hive_sql.py", "--timeout", "1500"],
    "trino": ["trino_sql.py"],
}

# (engine, shape, part, what its error or the wrong answer says), patterns all. Parts: read, add, copy, again
KNOWN: list[tuple[str, str, str, str]] = [
    # Paimon 0.9 and 1.0 know no postponed buckets
    ("spark-3.5", "postponed", "read|add|again", "number of buckets needs to be greater than 0"),
    # Hive's values split times before 1970 wrong, in every format
    ("hive", "old_.*", "read|add|again", "NanoOfSecond"),
    # its rows wait on level 0, which readers leave out there, until somebody compacts
    ("hive", "vectors.*|first_.*", "copy", "not compacted"),
    # the plugin writes no rows that its core looks up, and knows two bucket modes
    ("trino", "vectors.*|first_.*", "add", "no temp disk directory"),
    ("trino", "hashed|moving", "add", "Unknown table bucket mode"),
    ("trino", "postponed", "read|add|again", "number of buckets needs to be greater than 0"),
    ("trino", "keyed_parted_.*", "add", "ClassCastException"),
    ("trino", "nested_(parquet|orc|avro)", "add", "arrayData"),
    ("trino", "nested_keyed_.*", "copy", "NULL for lists, maps and rows"),
    # its own ORC reader: no plain times for instants; before 1970 a fraction below a millisecond costs a second
    ("trino", "instants_orc", "read|add|again", "Cannot read SQL type"),
    ("trino", "old_orc|true_instants_orc", "read|add|again", "23:59:56.000999"),
    ("trino", "old_orc", "copy", "a second early"),
    ("trino", "old_keyed_orc", "again", "23:59:56.000999"),
]


def known(engine: str, shape: str, part: str) -> str | None:
    """Why an engine fails at a part of a shape; None if it must not."""
    for who, which, what, why in KNOWN:
        if re.fullmatch(who, engine) and re.fullmatch(which, shape) and re.fullmatch(what, part):
            return why
    return None


def adds(engine: str, shape: Shape) -> bool:
    """Whether an engine may be asked to add rows: Hive waits for ever where buckets are not fixed, or it cannot read."""
    return engine != "hive" or (int(shape.options.get("bucket", "-1")) > 0 and shape.columns is not engine_tables.OLD)


def ask(engine: str, warehouse: pathlib.Path, part: str, statements: list[str]) -> list[dict]:
    """Answers to statements, one session of the engine; skips where there is none."""
    if not LAUNCHERS.is_dir():
        pytest.skip(f"{engine}: no launchers at {LAUNCHERS}")
    script, *arguments = ENGINES[engine]
    where = [] if engine == "hive" else ["--warehouse", str(warehouse)]
    doors = []
    if engine == "hive":
        handler = "STORED BY 'org.apache.paimon.hive.PaimonStorageHandler'"
        doors = [f"CREATE EXTERNAL TABLE {name} {handler} LOCATION '{warehouse}/default.db/{name}'" for name in SHAPES]
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
        file.write(";\n".join([*doors, *statements]) + ";\n")
        file.flush()
        command = [sys.executable, str(LAUNCHERS / script), *arguments, *where, "--keep-going", "-f", file.name]
        told = warehouse / f"{part}.jsonl"  # to look at while it runs
        with told.open("w") as out, told.with_suffix(".log").open("w") as errors:
            subprocess.run(command, stdout=out, stderr=errors, timeout=3000)
    answers = [json.loads(line) for line in told.read_text().splitlines() if line.startswith('{"statement"')]
    log = told.with_suffix(".log").read_text()[-2000:]
    if not answers:
        pytest.skip(f"{engine} cannot be fetched or started: {log}")
    assert len(answers) == len(doors) + len(statements), log
    return answers[len(doors) :]


class Turns:
    """What an engine answered, and what we say to the same statements, by shape and part."""

    def __init__(self, engine: str, warehouse: pathlib.Path) -> None:
        self.found: dict[tuple[str, str], list[tuple[str, dict, list]]] = {}
        self._warehouse, self._engine = warehouse, engine
        for shape in SHAPES.values():
            create(warehouse, shape)
        self._part("read", {name: selects(shape) for name, shape in SHAPES.items()})
        copies = {name: [copy_of_a_row(shape)] if adds(engine, shape) else [] for name, shape in SHAPES.items()}
        self._part("add", {name: [*copies[name], selects(shape)[0]] for name, shape in SHAPES.items()})
        for shape in SHAPES.values():
            more(open_table(warehouse, shape), shape)
        self._part("again", {name: selects(shape)[:1] for name, shape in SHAPES.items()})

    def _part(self, part: str, statements: dict[str, list[str]]) -> None:
        answers = iter(ask(self._engine, self._warehouse, part, [one for each in statements.values() for one in each]))
        for name, texts in statements.items():
            shape = SHAPES[name]
            table = open_table(self._warehouse, shape)
            ours = [[] if text.startswith("INSERT") else expected(table, shape, text) for text in texts]
            self.found[name, part] = list(zip(texts, [next(answers) for _ in texts], ours, strict=True))


@functools.cache
def turns(engine: str) -> Turns:
    return Turns(engine, pathlib.Path(tempfile.mkdtemp(prefix=f"engines-{engine}-")))


def wrong(shape: Shape, text: str, answer: dict, ours: list) -> str | None:
    """What is not as it should be about the answer to one statement."""
    if not answer["ok"]:
        return f"{text}: {answer['error'][:600]}"
    if text.startswith("INSERT"):
        return None
    theirs = normal(shape, text, answer["rows"])
    if theirs == ours:
        return None
    return f"{text}: theirs {[row for row in theirs if row not in ours][:3]}, ours {[row for row in ours if row not in theirs][:3]}"


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_and_we_read_the_same_rows_whoever_wrote_them(engine, name):
    errors = []
    for part in ("read", "add", "again"):
        statements = turns(engine).found[name, part]
        found = [wrong(SHAPES[name], *one) for one in statements]
        reason = known(engine, name, part)
        report(engine, name, part, len(found), found, reason)
        if reason is None:
            errors += [f"{part}: {one}" for one in found if one]
        else:
            assert any(one and re.search(reason, one) for one in found), f"{part}: is no longer so: {reason}"
    assert not errors, "\n".join(errors)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_row_that_an_engine_copies_is_the_same_row_for_us(engine, name):
    if not adds(engine, SHAPES[name]) or known(engine, name, "add") is not None:
        pytest.skip(f"{engine} does not write to {name}")
    rows = {row[engine_tables.names(SHAPES[name]).index("k")]: row for row in turns(engine).found[name, "add"][-1][2]}
    copy = tuple("1005" if at == "5" and column == "k" else at for column, at in zip(engine_tables.names(SHAPES[name]), rows["5"]))
    reason = known(engine, name, "copy")
    assert (rows.get("1005") == copy) is (reason is None), (rows.get("1005"), copy)


def report(engine: str, name: str, part: str, count: int, found: list, reason: str | None) -> None:
    """A line of counts for who collects them."""
    path = os.environ.get("PAIMON_ENGINE_REPORT")
    if path:
        bad = [one for one in found if one]
        line = {"engine": engine, "shape": name, "part": part, "statements": count, "equal": count - len(bad), "known": reason, "wrong": bad}
        with open(path, "a") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
