"""Tables with BLOBs, filled and changed by Java and by us in turns: both see the same bytes of the same rows."""

from __future__ import annotations

import datetime
import random

import pyarrow as pa
import pytest
from pair import Kind, Pair

from paimon_py import BlobRef, BlobViewRef, Catalog, NotFoundError, Schema, col
from paimon_py.codec.pack_references import decode_packs

pytestmark = pytest.mark.java

COLUMNS = [["id", "INT"], ["a", "BLOB"], ["n", "STRING"], ["l", {"type": "ARRAY", "element": "BLOB"}], ["b", "BLOB"]]
EVOLVES = {"bucket": "-1", "row-tracking.enabled": "true", "data-evolution.enabled": "true", "deletion-vectors.enabled": "true", "compaction.min.file-num": "2"}
KINDS = {
    "plain": Kind(COLUMNS, options=EVOLVES),
    "rolling": Kind(COLUMNS, options={**EVOLVES, "blob.target-file-size": "60 b", "target-file-row-num": "4"}),
    "avro": Kind(COLUMNS, options={**EVOLVES, "file.format": "avro"}),
}


def hexed(value):
    if isinstance(value, list):
        return [hexed(item) for item in value]
    return value.hex() if isinstance(value, bytes) else value


class Life:
    """Random steps on one table; a dict knows the values of each row id."""

    def __init__(self, pair: Pair, kind: Kind, rng: random.Random) -> None:
        self.pair, self.rng = pair, rng
        self.rows: dict[int, dict] = {}
        self.next_id = 0
        pair.create(kind, rng.choice("oj"))

    def blob(self):
        return self.rng.choice([None, b"", self.rng.randbytes(self.rng.randrange(1, 40))])

    def row(self) -> dict:
        blobs = self.rng.choice([None, [], [self.blob() for _ in range(3)]])
        return {"id": self.rng.randrange(100), "a": self.blob(), "n": self.rng.choice(["x", None]), "l": blobs, "b": self.blob()}

    def write(self, who: str) -> None:
        rows = [self.row() for _ in range(self.rng.randrange(1, 8))]
        if who == "j":
            self.pair.step("write", rows=[{name: hexed(value) for name, value in row.items()} for row in rows])
        else:
            self.pair.table().write_arrow(rows)
        self.rows |= dict(enumerate(rows, self.next_id))
        self.next_id += len(rows)

    def chosen(self) -> list[int]:
        return self.rng.sample(sorted(self.rows), self.rng.randrange(len(self.rows) + 1))

    def set_blobs(self) -> None:
        ids, name = self.chosen(), self.rng.choice("ab")
        if ids:
            values = {one: self.blob() for one in ids}
            self.pair.table().update_rows([{"_ROW_ID": one, name: value} for one, value in values.items()])
            for one, value in values.items():
                self.rows[one] = {**self.rows[one], name: value}

    def set_by_java(self) -> None:
        """Java sets a column of all rows of a range, with placeholders where it stays."""
        ranges = {(row["first_row_id"], row["record_count"]) for row in self.pair.table().system("files").scan().to_arrow().to_pylist() if not row["file_path"].endswith(".blob")}
        if ranges:
            first, count = self.rng.choice(sorted(ranges))
            values = [self.rng.choice([{"placeholder": True}, self.blob()]) for _ in range(count)]
            self.pair.step("write", rows=[{"a": hexed(value)} for value in values], writeColumns=["a"], firstRowId=first)
            for one, value in enumerate(values, first):
                if one in self.rows and not isinstance(value, dict):
                    self.rows[one] = {**self.rows[one], "a": value}

    def delete(self) -> None:
        ids = self.chosen()[:2]
        if ids:
            if self.rng.random() < 0.5:
                self.pair.step("deleteRows", rowIds=ids)
            else:
                self.pair.table().delete(col("_ROW_ID").isin(ids))
            for one in ids:
                del self.rows[one]

    def care(self) -> None:
        if self.rng.random() < 0.5:
            self.pair.table().compact(full=True)
        else:
            self.pair.step("compact", full=True, blobs=self.rng.random() < 0.7)

    def check(self) -> None:
        table = self.pair.table()
        found = table.scan(columns=[name for name, _ in COLUMNS] + ["_ROW_ID"]).to_arrow().to_pylist()
        assert {row.pop("_ROW_ID"): row for row in found} == self.rows
        assert sum(entry.added_rows - entry.deleted_rows for entry in table.history()) == len(self.rows)
        theirs = {row["_ROW_ID"]: {name: row[name] for name, _ in COLUMNS} for row in self.pair.step("read", rowTracking=True)}
        assert theirs == {one: {name: hexed(value) for name, value in row.items()} for one, row in self.rows.items()}
        refs = table.scan(columns=["_ROW_ID", "a"]).to_arrow(blobs="refs").to_pylist()
        for row in refs:
            value = self.rows[row["_ROW_ID"]]["a"]
            assert (row["a"] is None) == (value is None)
            if value is not None:
                ref = BlobRef.from_bytes(row["a"])
                with open(ref.uri.removeprefix("file:"), "rb") as source:
                    source.seek(ref.offset)
                    assert source.read(ref.length) == value

    def live(self, steps: int) -> None:
        for _ in range(steps):
            self.rng.choice([lambda: self.write("o"), lambda: self.write("j"), self.set_blobs, self.set_by_java, self.delete, self.care])()
            self.check()


KEYED = [["id", "INT NOT NULL"], ["a", "BLOB"], ["n", "STRING"], ["l", {"type": "ARRAY", "element": "BLOB"}], ["m", {"type": "MAP", "key": "STRING", "value": "BLOB"}], ["r", "BLOB"]]
PACKED = {
    "plain": Kind(KEYED, primary_key=["id"], options={"bucket": "2", "blob-descriptor-field": "r"}),
    "rolling": Kind(KEYED, primary_key=["id"], options={"bucket": "1", "blob.target-file-size": "60 b", "blob-descriptor-field": "r", "num-sorted-run.compaction-trigger": "2"}),
    "orc": Kind(KEYED, primary_key=["id"], options={"bucket": "1", "file.format": "orc", "blob-descriptor-field": "r"}),
    "avro": Kind(KEYED, primary_key=["id"], options={"bucket": "-1", "file.format": "avro", "blob-descriptor-field": "r"}),
    "dead rows": Kind(KEYED, primary_key=["id"], options={"bucket": "1", "deletion-vectors.enabled": "true", "blob-descriptor-field": "r"}),
}


class PackedLife:
    """Random steps on a primary-key table whose BLOBs lie in packs; a dict knows the values of each key."""

    def __init__(self, pair: Pair, kind: Kind, rng: random.Random) -> None:
        self.pair, self.rng, self.kind = pair, rng, kind
        self.rows: dict[int, dict] = {}
        self.file = pair.warehouse / "bytes"
        self.file.write_bytes(bytes(range(100)))
        pair.create(kind, rng.choice("oj"))

    def blob(self):
        return self.rng.choice([None, b"", self.rng.randbytes(self.rng.randrange(1, 40))])

    def row(self) -> dict:
        blobs = self.rng.choice([None, [], [self.blob() for _ in range(3)]])
        named = self.rng.choice([None, [], [("x", self.blob()), ("y", self.blob())]])
        start = self.rng.randrange(50)
        ref = self.rng.choice([None, BlobRef(f"file:{self.file}", start, 5)])
        return {"id": self.rng.randrange(12), "a": self.blob(), "n": self.rng.choice(["x", None]), "l": blobs, "m": named, "r": ref}

    def of_java(self, row: dict) -> dict:
        pairs = None if row["m"] is None else [[key, hexed(value)] for key, value in row["m"]]
        ref = row["r"] and {"uri": row["r"].uri, "offset": row["r"].offset, "length": 5}
        return {"id": row["id"], "a": hexed(row["a"]), "n": row["n"], "l": hexed(row["l"]), "m": pairs, "r": ref}

    def write(self, who: str) -> None:
        rows = list({row["id"]: row for row in (self.row() for _ in range(self.rng.randrange(1, 6)))}.values())
        if who == "j":
            self.pair.step("write", rows=[self.of_java(row) for row in rows])
        else:
            self.pair.table().write_arrow(rows)
        self.rows |= {row["id"]: row for row in rows}

    def update(self) -> None:
        value, name = self.row(), self.rng.choice("anlm")
        key = self.rng.choice(sorted(self.rows))
        self.pair.table().update(f"id = {key}", {name: value[name]})
        self.rows[key] = {**self.rows[key], name: value[name]}

    def upsert(self) -> None:
        row = self.row()
        names = ["id", *self.rng.sample("anlm", 2)]
        self.pair.table().upsert([{name: row[name] for name in names}])
        before = self.rows.get(row["id"], dict.fromkeys(row))
        self.rows[row["id"]] = {**before, **{name: row[name] for name in names}}

    def merge(self) -> None:
        rows = list({row["id"]: row for row in (self.row() for _ in range(3))}.values())
        rows = [{"id": row["id"], "a": row["a"]} for row in rows]
        data = pa.Table.from_pylist(rows, pa.schema([("id", pa.int32()), ("a", pa.large_binary())]))
        self.pair.table().merge(data, on=["id"], when_matched_update={"a": col("source.a")}, when_not_matched_insert=True)
        for row in rows:
            before = self.rows.get(row["id"], dict.fromkeys(self.row()))
            self.rows[row["id"]] = {**before, **row}

    def delete(self) -> None:
        key = self.rng.choice(sorted(self.rows))
        if self.rng.random() < 0.5:
            self.pair.step("write", rows=[{**self.of_java(self.rows[key]), "_kind": "-D"}])
        else:
            self.pair.table().delete(f"id = {key}")
        del self.rows[key]

    def care(self) -> None:
        if self.rng.random() < 0.5:
            self.pair.table().compact(full=self.rng.random() < 0.5)
        else:
            self.pair.step("compact", full=True)
        if self.rng.random() < 0.3:
            self.pair.table().expire_snapshots(retain_max=1, retain_min=1, older_than=datetime.timedelta())

    def check(self) -> None:
        table = self.pair.table()
        shown = {row["id"]: {**row, "r": row["r"] and bytes(range(row["r"].offset, row["r"].offset + 5))} for row in self.rows.values()}
        found = {row["id"]: row for row in table.to_arrow().to_pylist()}
        assert found == shown
        theirs = {row["id"]: row for row in self.pair.step("read")}
        assert theirs.keys() == shown.keys()
        for key, row in shown.items():
            pairs = None if row["m"] is None else [[name, hexed(value)] for name, value in row["m"]]
            other = theirs[key]["m"]
            assert (other and sorted(other)) == (pairs and sorted(pairs))
            assert [theirs[key][name] for name in "anlr"] == [hexed(row["a"]), row["n"], hexed(row["l"]), hexed(row["r"])]
        needed = set()
        for row in table.scan().to_arrow(blobs="refs").to_pylist():
            values = [row["a"], *(row["l"] or ()), *(value for _, value in row["m"] or ())]
            needed |= {BlobRef.from_bytes(value).uri for value in values if value is not None}
        named = set()
        for entry in table.snapshot().manifests() if table.snapshot() else ():
            for file in (each.file for each in entry.entries()):
                assert [name for name in file.extra_files if name.endswith(".blobref")] == [f"{file.name}.blobref"]
        for path in self.pair.path.rglob("*.blobref"):
            named |= {f"{pack.directory}/{pack.name}" for pack in decode_packs(path.read_bytes(), str(path))}
        assert needed <= named

    def live(self, steps: int) -> None:
        acts = [lambda: self.write("o"), lambda: self.write("j"), self.upsert, self.merge, self.care]
        for _ in range(steps):
            self.rng.choice(acts + ([self.update, self.delete] if self.rows else []))()
            self.check()


@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize("seed", range(2))
def test_packed_blobs_in_turns(kind, seed, java, tmp_path):
    PackedLife(Pair(java("2.0.0"), tmp_path), PACKED[kind], random.Random(f"{kind} {seed}")).live(8)


@pytest.mark.full
@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize("seed", range(100, 120))
def test_long_lives_of_packed_blobs(kind, seed, java, tmp_path):
    PackedLife(Pair(java("2.0.0"), tmp_path), PACKED[kind], random.Random(f"{kind} {seed}")).live(15)


def test_views_of_ours_are_read_by_java(java, tmp_path):
    pair = Pair(java("2.0.0"), tmp_path)
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("db", exist_ok=True)
    evolves = {"bucket": "-1", "row-tracking.enabled": "true", "data-evolution.enabled": "true", "deletion-vectors.enabled": "true"}
    source = catalog.create_table("db.u", Schema({"id": "INT", "a": "BLOB"}), options=evolves)
    source.write_arrow([{"id": 1, "a": b"1"}, {"id": 2, "a": None}, {"id": 3, "a": b"333"}])
    number = source.schema.field("a").id
    for name, extra in (("v", evolves), ("w", {"bucket": "1"})):
        columns, keys = Schema({"id": "INT NOT NULL", "a": "BLOB"}), [] if name == "v" else ["id"]
        table = catalog.create_table(f"db.{name}", columns, primary_key=keys, options={**extra, "blob-view-field": "a"})
        table.write_arrow([{"id": at, "a": None if at == 3 else BlobViewRef("db.u", number, at)} for at in range(4)][:3] + [{"id": 3, "a": None}])
        assert [row["a"] for row in table.to_arrow().sort_by("id").to_pylist()] == [b"1", None, b"333", None]
        if name == "v":  # Java 2.0 does not resolve views under a primary key
            theirs = pair.java.run(str(tmp_path), [{"op": "read", "table": f"db.{name}"}])[0]["result"]
            assert sorted((row["id"], row["a"]) for row in theirs if row["a"]) == [(0, "31"), (2, "333333")]
        refs = {row["id"]: row["a"] for row in table.scan().to_arrow(blobs="refs").to_pylist()}
        assert BlobViewRef.from_bytes(refs[2]) == BlobViewRef("db.u", number, 2)


def test_packs_are_those_of_java(java, tmp_path):
    """The same rows under the same options: packs of the same bytes, and lists of packs with the same names."""
    pair, found = Pair(java("2.0.0"), tmp_path), {}
    rows = [{"id": at, "a": bytes([at]) * at or None, "n": "x", "l": [b"q", None, b""], "m": [("x", b"1")], "r": None} for at in range(20)]
    for who in "oj":
        pair.create(PACKED["rolling"], who)
        if who == "j":
            life = PackedLife.__new__(PackedLife)
            pair.step("write", rows=[life.of_java(row) for row in rows])
        else:
            pair.table().write_arrow(rows)
        paths = list(pair.path.rglob("*.managed.blob"))
        file = pair.table().system("files").scan().to_arrow().to_pylist()
        stats = [(row["level"], row["record_count"], row["null_value_counts"], row["min_value_stats"]) for row in file]
        packs = [decode_packs(path.read_bytes(), "") for path in pair.path.rglob("*.blobref")]
        found[who] = (sorted(path.read_bytes() for path in paths), stats, [len(each) for each in packs])
        head = {"o": "file:", "j": ""}[who]  # as the warehouse is given
        for each in packs:
            assert {f"{pack.directory}/{pack.name}" for pack in each} == {f"{head}{path}" for path in paths}
        pair.step("drop")
    assert found["o"] == found["j"] and len(found["o"][0]) > 10


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_blobs_in_turns(kind, seed, java, tmp_path):
    Life(Pair(java("2.0.0"), tmp_path), KINDS[kind], random.Random(f"{kind} {seed}")).live(10)


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(100, 130))
def test_long_lives_of_blobs(kind, seed, java, tmp_path):
    Life(Pair(java("2.0.0"), tmp_path), KINDS[kind], random.Random(f"{kind} {seed}")).live(20)


def test_files_are_those_of_java(java, tmp_path):
    """The same rows under the same options: files of the same bytes."""
    pair, files = Pair(java("2.0.0"), tmp_path), {}
    rng = random.Random(3)
    rows = [{"id": i, "a": rng.choice([None, b"", rng.randbytes(50)]), "n": "x", "l": rng.choice([None, [], [b"q", None, b""]]), "b": None} for i in range(30)]
    for who in "oj":
        pair.create(KINDS["rolling"], who)
        if who == "j":
            pair.step("write", rows=[{name: hexed(value) for name, value in row.items()} for row in rows])
        else:
            pair.table().write_arrow(rows)
        found = pair.table().system("files").scan().to_arrow().to_pylist()
        files[who] = []
        for row in found:
            if row["file_path"].endswith(".blob"):
                with open(row["file_path"].removeprefix("file:"), "rb") as source:
                    files[who].append((row["write_cols"], row["first_row_id"], row["record_count"], source.read().hex()))
        pair.step("drop")
    assert sorted(files["o"]) == sorted(files["j"]) and len(files["o"]) > 10


def test_references_views_and_packs_of_java(java, tmp_path):
    """Bytes that lie elsewhere: in a file of the warehouse, in a column of another table, in packs of a primary-key table."""
    (tmp_path / "x").write_bytes(b"0123456789")
    evolves = {"bucket": "-1", "row-tracking.enabled": "true", "data-evolution.enabled": "true", "deletion-vectors.enabled": "true"}
    ref, view = {"uri": f"{tmp_path}/x", "offset": 3, "length": 5}, lambda row: {"table": "db.u", "field": 1, "rowId": row}
    steps = [
        {"op": "create", "table": "db.r", "columns": [["id", "INT"], ["a", "BLOB"]], "tableOptions": {**evolves, "blob-descriptor-field": "a"}},
        {"op": "write", "table": "db.r", "rows": [{"id": 1, "a": ref}, {"id": 2, "a": None}, {"id": 3, "a": {"uri": f"file:{tmp_path}/x"}}]},
        {"op": "create", "table": "db.u", "columns": [["id", "INT"], ["a", "BLOB"]], "tableOptions": evolves},
        {"op": "write", "table": "db.u", "rows": [{"id": 1, "a": "01"}, {"id": 2, "a": None}, {"id": 3, "a": "03"}]},
        {"op": "create", "table": "db.v", "columns": [["id", "INT"], ["a", "BLOB"]], "tableOptions": {**evolves, "blob-view-field": "a"}},
        {"op": "write", "table": "db.v", "rows": [{"id": 1, "a": view(2)}, {"id": 2, "a": view(1)}, {"id": 3, "a": None}, {"id": 4, "a": view(0)}]},
        {"op": "create", "table": "db.k", "columns": [["id", "INT NOT NULL"], ["a", "BLOB"], ["l", {"type": "ARRAY", "element": "BLOB"}]], "primaryKeys": ["id"], "tableOptions": {"bucket": "1", "blob-field": "a,l"}},
        {"op": "write", "table": "db.k", "rows": [{"id": 1, "a": "01", "l": ["aa", None, "bbbb"]}, {"id": 2, "a": None, "l": None}, {"id": 3, "a": "03", "l": []}]},
        {"op": "write", "table": "db.k", "rows": [{"id": 1, "a": "99", "l": ["cc"]}]},
    ]
    java("2.0.0").run(str(tmp_path), steps)
    catalog = Catalog.open(str(tmp_path))
    for name in "ruvk":
        theirs = java("2.0.0").run(str(tmp_path), [{"op": "read", "table": f"db.{name}"}])[0]["result"]
        ours = [{key: hexed(value) for key, value in row.items()} for row in catalog.table(f"db.{name}").to_arrow().to_pylist()]
        assert sorted(ours, key=lambda row: row["id"]) == sorted(({key: row[key] for key in row if key != "_kind"} for row in theirs), key=lambda row: row["id"])
    keyed = catalog.table("db.k")
    assert keyed.lookup([{"id": 1}], columns=["id"]).num_rows == 1
    found = keyed.lookup([{"id": 3}, {"id": 9}, {"id": 1}, {"id": 2}], missing="null").to_pylist()
    assert [(row["a"], row["l"]) for row in found] == [(b"\3", []), (None, None), (b"\x99", [b"\xcc"]), (None, None)]
    assert keyed.lookup([{"id": 1}], columns=["l"]).to_pylist() == [{"l": [b"\xcc"]}]
    assert keyed.lookup([{"id": 7}]).num_rows == 0
    assert [row.read() for row in keyed.scan(where="id = 1").blobs("a")] == [bytes([0x99])]
    assert [row.is_null or row.read() for row in catalog.table("db.v").scan().blobs("a")] == [b"\3", True, True, b"\1"]
    catalog.table("db.u").delete("id = 3")
    with pytest.raises(NotFoundError, match="row 2 of db.u, which no longer exists"):
        catalog.table("db.v").to_arrow()
