"""Tables of the official SDK's releases: Java and we read the same rows, also after each of us has written and compacted."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from environments import SDK, python_with
from values import canonical_rows, ours

from paimon_py import Table

pytestmark = [pytest.mark.java, pytest.mark.full, pytest.mark.timeout(1800)]
RELEASES = ("1.4.2", "2.0.0", "2.1.0")


@pytest.fixture(scope="module", params=RELEASES)
def sdk(request, tmp_path_factory):
    """The Python of an environment with a release of the SDK."""
    _, packages = SDK[f"pypaimon-{request.param}"]
    return python_with(tmp_path_factory.mktemp("sdk"), packages)


def make(python, warehouse):
    subprocess.run([python, "-W", "ignore", Path(__file__).with_name("sdk_shapes.py"), warehouse], check=True)


def rows(java, warehouse, name):
    """Java's rows and ours; None for Java's where it cannot read the table."""
    table = Table.open(f"{warehouse}/db.db/{name}")
    fields = json.loads(Path(table.location, "schema", f"schema-{table.schema.id}").read_text())["fields"]
    columns = [[field["name"], field["type"]] for field in fields]
    (read,) = java.run(str(warehouse), [{"op": "read", "table": f"db.{name}"}], check=False)
    theirs = sorted(map(str, canonical_rows(columns, read["result"]))) if read["ok"] else None
    return theirs, sorted(map(str, ours(columns, table.to_arrow())))


def test_every_table_is_read_as_java_reads_it_whoever_acts(sdk, java, tmp_path):
    session = java("2.0.0")
    make(sdk, tmp_path)
    names = sorted(path.name for path in (tmp_path / "db.db").iterdir())
    assert len(names) >= 8
    for turn in ("as made", "compacted by us", "written by the SDK", "compacted by Java", "compacted by us again"):
        for name in names:
            table = Table.open(f"{tmp_path}/db.db/{name}")
            if "by us" in turn:
                table.compact(full=True)
            elif turn == "compacted by Java" and table.schema.primary_keys:
                session.run(str(tmp_path), [{"op": "compact", "table": f"db.{name}", "full": True}])
        if turn == "written by the SDK":
            make(sdk, tmp_path)
        for name in names:
            theirs, found = rows(session, tmp_path, name)
            assert theirs is not None, (turn, name)
            assert found == theirs, (turn, name)
