"""Random lives of tables with Iceberg metadata: after every step Iceberg readers see the rows that they can, and no others.

What they can see: of tables without keys every row; of tables with keys what the last full compaction left, which is
noted here when it happens, and found again after a rollback.
"""

from __future__ import annotations

import contextlib
import json
import random
import subprocess

import pytest
from interop.environments import python_with

from paimon_py import AddColumn, Catalog, DropColumn, RenameColumn, Schema
from paimon_py.iceberg.metadata import identity_of

pytest.importorskip("pyiceberg")
from pyiceberg.table import StaticTable

pytestmark = pytest.mark.filterwarnings("ignore::paimon_py.PaimonWarning", "ignore::ResourceWarning", "ignore::DeprecationWarning")

VECTORS = {
    "metadata.iceberg.format-version": "3", "deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": "true",
}  # fmt: skip
SMALL = {"metadata.iceberg.compaction.min.file-num": "2", "metadata.iceberg.compaction.max.file-num": "3"}
FEW = {"snapshot.num-retained.min": "2", "snapshot.num-retained.max": "4"}
KINDS = {
    "append": ((), (), {}),
    "append, small manifests": ((), (), SMALL),
    "append, few snapshots": ((), (), FEW),
    "append, hadoop": ((), ("p",), {"metadata.iceberg.storage": "hadoop-catalog", "metadata.iceberg.previous-versions-max": "2"}),
    "append, partitions, version 3": ((), ("p",), {"metadata.iceberg.format-version": "3"}),
    "append, vectors": ((), (), VECTORS),
    "append, partitions, vectors": ((), ("p",), {**VECTORS, **SMALL}),
    "keys": (("k",), (), {"bucket": "1", "write-only": "true"}),
    "keys, partitions": (("p", "k"), ("p",), {"bucket": "1", "write-only": "true", **SMALL}),
    "keys, vectors": (("k",), (), {"bucket": "2", **VECTORS}),
    "keys, partitions, vectors": (("p", "k"), ("p",), {"bucket": "1", **VECTORS, **SMALL}),
}
DUCKDB = ["duckdb", "duckdb-extension-iceberg", "duckdb-extension-avro", "duckdb-extension-httpfs"]
READ_DUCKDB = """
import duckdb, duckdb_extension_iceberg as found, json, os, sys
base = os.path.dirname(list(found.__path__)[0])
c = duckdb.connect()
for name in ("avro", "httpfs", "iceberg"):
    folder = os.path.join(base, "duckdb_extension_" + name, "extensions")
    c.sql(f"LOAD '{folder}/{sorted(os.listdir(folder))[-1]}/{name}.duckdb_extension'")
c.sql("SET threads = 1; SET enable_progress_bar = false")
for line in sys.stdin:
    rows = c.sql(f"SELECT * FROM iceberg_scan('{line.strip()}')").to_arrow_table().to_pylist()
    print("rows", json.dumps(rows), flush=True)
"""


class DuckReader:
    """DuckDB in a process of its own, since some manifests end it; reads one metadata file after the other."""

    def __init__(self, python):
        command = [str(python), "-c", READ_DUCKDB]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, path):
        print(path, file=self.process.stdin, flush=True)
        for line in self.process.stdout:
            if line.startswith("rows "):
                return json.loads(line[len("rows ") :])
        raise AssertionError("DuckDB failed: see its traceback")

    def close(self):
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


def read_pyiceberg(path, snapshot_id=None):
    return StaticTable.from_metadata(path).scan(snapshot_id=snapshot_id).to_arrow().to_pylist()


class Life:
    """One table and its random steps. Rows are noted by field id, so that renamed columns do not matter."""

    def __init__(self, seed, kind, place):
        self.rng = random.Random(f"{seed} {kind}")
        self.keys, partitions, options = KINDS[kind]
        catalog = Catalog.open(str(place))
        catalog.create_database("d")
        columns = [("k", "BIGINT NOT NULL"), ("p", "STRING NOT NULL"), ("v", "STRING")]
        options = {"metadata.iceberg.storage": "table-location", "fs.local.fsync": "false", "snapshot.num-retained.min": "50", **options}
        self.table = catalog.create_table(
            "d.t", Schema(columns), primary_key=list(self.keys), partition_by=list(partitions), options=options
        )
        self.names, self.count, self.tags = [], 0, 0
        self.noted, self.shown = {}, []
        self.steps = []

    # -- steps ---------------------------------------------------------------------------------------------------------

    def rows(self, partitions="ab", schema=None):
        fields = (schema or self.table.schema).fields
        extra = [field.name for field in fields if field.name not in ("k", "p") and field.name[0] != "n"]
        made = {}
        for _ in range(self.rng.choice((1, 3, 40))):
            self.count += 1
            row = {"k": self.rng.randrange(30), "p": self.rng.choice(partitions)}
            row |= {name: self.rng.choice((None, f"text {self.count}")) for name in extra}
            row |= {field.name: self.count for field in fields if field.name[0] == "n"}
            made[row["k"], row["p"]] = row
        return list(made.values())

    def write(self):
        self.table.write_arrow(self.rows())

    def overwrite(self):
        if self.table.schema.partition_keys:
            self.table.write_arrow(self.rows("a"), overwrite={"p": "a"})  # its rows are on the highest level: readers see them
            seen = self.by_id(self.table.scan(where="p = 'a'").to_arrow().to_pylist())
            (number,) = [field.id for field in self.table.schema.fields if field.name == "p"]
            self.shown = [row for row in self.shown if row[number] != "a"] + seen
        else:
            self.table.write_arrow(self.rows(), overwrite={})

    def compact(self):
        self.table.compact(full=True)

    def delete(self):
        if self.keys or "deletion-vectors.enabled" in self.table.options:
            self.table.delete(f"k IN ({', '.join(str(self.rng.randrange(30)) for _ in range(8))})")
        else:
            self.write()

    def delete_more(self):
        if self.keys or "deletion-vectors.enabled" in self.table.options:
            self.table.delete(f"k < {self.rng.randrange(12)}")
        else:
            self.overwrite()

    def evolve(self):
        free = [field.name for field in self.table.schema.fields if field.name not in ("k", "p")]
        what = self.rng.choice(("add", "rename", "drop"))
        if what == "add" or len(free) < 2:
            self.table.alter(AddColumn(f"n{self.count}", "INT"))
        elif what == "rename":
            name = self.rng.choice(free)
            self.table.alter(RenameColumn(name, f"{name[0]}{self.count}x"))
        else:
            self.table.alter(DropColumn(self.rng.choice(free)))
        self.write()

    def tag(self):
        self.tags += 1
        self.table.create_tag(f"t{self.tags}", snapshot_id=self.rng.choice([one.id for one in self.table.snapshots()]))

    def delete_tag(self):
        for tag in self.table.tags()[:1]:
            self.table.delete_tag(tag.name)

    def expire(self):
        self.table.expire_snapshots(retain_max=self.rng.choice((1, 3)), retain_min=1)

    def roll_back(self):
        noted = [one.id for one in self.table.snapshots() if self.mark(one.id) in self.noted]
        self.table.rollback_to(self.rng.choice(noted[-4:]))

    def branch(self):
        """A branch that goes another way, and often replaces main."""
        name = f"b{self.count}"
        self.table.create_branch(name, self.table.snapshot().id)
        branch = self.table.branch(name)
        branch.write_arrow(self.rows(schema=branch.schema))  # that of its snapshot, which may be older than the table's
        if self.keys:
            branch.compact(full=True)
        if self.rng.random() < 0.6:
            self.table.fast_forward(name, discard=self.table.schema.id != branch.schema.id)
            self.table.refresh()
        else:
            self.table.delete_branch(name)

    def truncate(self):
        self.table.truncate()

    def publish(self):
        if self.keys:  # else readers see single files of level 0, too, which need no merge
            self.table.compact(full=True)
        self.table.publish_iceberg()

    # -- what is seen --------------------------------------------------------------------------------------------------

    def by_id(self, rows):
        ids = {field.name: field.id for field in self.table.schema.fields}
        return [{ids[name]: value for name, value in row.items()} for row in rows]

    def plain(self, rows):
        """Rows in the form in which they are compared: the columns of now, whatever the order of rows."""
        ids = [field.id for field in self.table.schema.fields]
        return sorted(json.dumps([row.get(number) for number in ids]) for row in rows)

    def step(self):
        name = self.rng.choice(
            ("write", "write", "write", "compact", "compact", "overwrite", "delete", "delete_more", "evolve", "tag", "delete_tag", "expire",
             "roll_back", "branch", "truncate", "publish")
        )  # fmt: skip
        self.steps.append(name)
        getattr(self, name)()

    def mark(self, number):
        return number, identity_of(self.table._root.snapshots.get(number))

    def note(self):
        """What readers can see now; it is noted for the latest snapshot."""
        snapshot = self.table.snapshot()
        mark = self.mark(snapshot.id)
        state = self.table.iceberg()
        assert (state.problems, state.lag, state.snapshot_id) == ((), 0, snapshot.id)
        if not self.keys or not state.hidden_rows:
            self.shown = self.by_id(self.table.scan().to_arrow().to_pylist())
            assert state.not_seen == ()
        elif mark in self.noted:
            self.shown = self.noted[mark]
        self.noted.setdefault(mark, self.shown)
        return state.path

    def judge(self, readers):
        path = self.note()
        for read in readers:
            assert self.plain(self.by_id(read(path))) == self.plain(self.shown), (read, self.steps)
        version = StaticTable.from_metadata(path)
        schema = {field.field_id for field in version.schema().fields}
        assert schema == {field.id for field in self.table.schema.fields}, self.steps
        listed = {one.snapshot_id for one in version.metadata.snapshots}
        marks = {self.mark(one.id): one.id for one in self.table.snapshots()}
        earlier = sorted(number for mark, number in marks.items() if mark in self.noted and number in listed)
        if earlier:
            number = self.rng.choice(earlier)
            rows = self.noted[next(mark for mark, found in marks.items() if found == number)]
            found = version.scan(snapshot_id=number).to_arrow().to_pylist()
            assert len(found) == len(rows), (number, self.steps)
            assert sorted(row["k"] for row in found) == sorted(row[0] for row in rows), (number, self.steps)
        refs = {name: ref.snapshot_id for name, ref in version.metadata.refs.items()}
        assert refs.pop("main") == self.table.snapshot().id
        assert refs == {tag.name: tag.snapshot.id for tag in self.table.tags() if tag.snapshot.id in listed}, self.steps


def live(seed, kind, place, steps, readers):
    life = Life(seed, kind, place)
    life.write()
    life.judge(readers)
    for _ in range(steps):
        life.step()
        life.judge(readers)


@pytest.mark.parametrize("kind", KINDS)
def test_readers_see_a_random_life(kind, tmp_path):
    live(0, kind, tmp_path, 6, [read_pyiceberg])


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS)
def test_readers_see_many_random_lives(kind, tmp_path):
    duckdb = DuckReader(python_with(tmp_path / "duckdb", [*(f"{name}==1.5.5" for name in DUCKDB), "pytz", "pyarrow"]))
    with contextlib.closing(duckdb):
        for seed in range(1, 21):
            live(seed, kind, tmp_path / str(seed), 15, [read_pyiceberg, duckdb])
