"""Tables of ours in other Python libraries: each reads the rows that we read, or is known for what it does instead."""

from __future__ import annotations

import pathlib
import re
import subprocess

import pyarrow as pa
import pytest
from engine_tables import SHAPES, create, open_table
from environments import SDK, python_with
from values import ours

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]
READER = pathlib.Path(__file__).with_name("foreign_reader.py")

LIBRARIES = {
    **SDK,
    "daft-0.7.26": ("daft", ["daft==0.7.26", "pypaimon==2.1.0"]),
    "duckdb-vane-0.2.0": ("vane", ["vane-ai==0.2.0", "vane-extension-paimon", "pyarrow"]),
    "clickhouse-26.9": ("clickhouse", ["chdb==4.4.0", "pyarrow"]),
}
"""By a name for the reader: how `foreign_reader.py` calls it, and the packages of its environment."""

REFUSED, DIFFERENT = "refused", "different"
KNOWN = [
    ("pypaimon-1..*", ".*parted_.*|moving", REFUSED, "partitions whose values are escaped in paths"),
    ("pypaimon-2.0.*", ".*parted_.*|moving", REFUSED, "partitions whose values are escaped in paths"),
    ("pypaimon-1.*", "aggregated_.*", DIFFERENT, "merge engines other than deduplicate are read as deduplicate"),
    ("pypaimon-1.*", "evolved_keyed_.*", REFUSED, "renamed and dropped columns of tables with keys"),
    ("pypaimon-1.*", "evolved_orc", REFUSED, "types that changed, in ORC"),
    ("pypaimon-1.*", "evolved_.*", DIFFERENT, "renamed columns are NULL in older files"),
    ("pypaimon-1.3.*", "append_dead_.*", DIFFERENT, "deletion vectors of append tables are not applied"),
    ("pypaimon-1.3.*", "nested_.*|.*instants_.*", REFUSED, "ROW, TIMESTAMP WITH LOCAL TIME ZONE"),
    ("pypaimon-1.*", "old_keyed_orc", REFUSED, "times before 1678 in ORC"),
    ("pypaimon.*|daft.*", "old_(keyed_)?orc|.*instants_orc", DIFFERENT, "times before 1678 in ORC wrap around"),
    ("rust.*", "old_(keyed_)?orc|.*instants_orc", REFUSED, "times before 1678 in ORC"),
    ("duckdb.*", "evolved_.*|nested_.*", REFUSED, "field ids with a gap: dropped columns, nested types; Java's tables likewise"),
    ("duckdb.*", "hashed|moving", REFUSED, "dynamic buckets"),
    ("duckdb.*", "instants_orc", REFUSED, "local-zone timestamps in ORC, unless orc.timestamp-ltz.legacy.type is false"),
    ("clickhouse.*", "evolved_(keyed_)?avro", REFUSED, "renamed columns in Avro"),
    ("clickhouse.*", "evolved_.*", DIFFERENT, "renamed columns are NULL in older files; keys are not merged"),
    ("clickhouse.*", "old_keyed_.*", DIFFERENT, "rows of one key are not merged"),
    ("clickhouse.*", "nested_.*", REFUSED, "ROW"),
    ("clickhouse.*", "(append|keyed|vectors|partial|aggregated|first)_.*|hashed|moving|postponed|vectors64", REFUSED, "dates before 1970"),
]
"""Pattern of libraries, pattern of tables, what happens instead of a read of our rows, why."""


def known(library: str, shape: str) -> str | None:
    """What the library is known to do with the table instead of reading its rows."""
    return next((what for who, names, what, _ in KNOWN if re.fullmatch(who, library) and re.fullmatch(names, shape)), None)


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory) -> pathlib.Path:
    made = tmp_path_factory.mktemp("ours")
    for shape in SHAPES.values():
        create(made, shape)
    return made


@pytest.fixture(scope="module")
def environment(request, tmp_path_factory) -> tuple[str, pathlib.Path]:
    """The library's name in `foreign_reader.py` and the Python of an environment that has it."""
    library, packages = LIBRARIES[request.param]
    return library, python_with(tmp_path_factory.mktemp("python"), packages)


def outcome(path: pathlib.Path, table, columns: list) -> str:
    """`read` for equal rows, else REFUSED or DIFFERENT with what came."""
    if not path.exists():
        return f"{REFUSED}: {path.with_suffix('.txt').read_text()[:300]}"
    with pa.ipc.open_file(path) as file:
        found = file.read_all()
    own = table.to_arrow()
    try:
        theirs = found.select(own.column_names).cast(pa.schema([field.with_nullable(True) for field in own.schema]))
    except (pa.ArrowException, KeyError) as error:
        return f"{DIFFERENT}: {error}"
    want, rows = sorted(map(str, ours(columns, own))), sorted(map(str, ours(columns, theirs)))
    return "read" if want == rows else f"{DIFFERENT}: {len(rows)} rows for {len(want)}: {set(rows) ^ set(want)}"[:600]


@pytest.mark.parametrize("environment", LIBRARIES, indirect=True)
def test_every_table_of_ours_is_read_or_known(request, environment, warehouse, tmp_path):
    name, (library, python) = request.node.callspec.params["environment"], environment
    subprocess.run([python, "-W", "ignore", READER, library, warehouse, tmp_path, *SHAPES], check=True, stdout=subprocess.DEVNULL)
    outcomes = {shape.name: outcome(tmp_path / f"{shape.name}.arrow", open_table(warehouse, shape), shape.final) for shape in SHAPES.values()}
    wrong = {
        shape: found
        for shape, found in outcomes.items()
        if found.split(":")[0] != (known(name, shape) or "read")
    }
    assert not wrong, "\n".join(f"{shape}: {found}" for shape, found in wrong.items())
