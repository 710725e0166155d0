"""What README promises of the public verbs: secrets stay, values travel, memory is a store, repeating is harmless."""

from __future__ import annotations

import datetime
import multiprocessing
import pickle
import traceback

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from unit.public import KEYED, QUICK, ROWS, WIDE, append_table, env, files, keyed_table, new_catalog, refused, reopened

import paimon_py
from paimon_py import (
    Catalog,
    Changes,
    LSMWriter,
    Manifest,
    OptionError,
    Schema,
    Snapshot,
    StorageError,
    Table,
    Tag,
    UsageError,
    col,
)
from paimon_py.env import Env
from paimon_py.metadata.root import TableRoot
from paimon_py.scan.split import Split
from paimon_py.spec.new_schema import TableSpec, new_table_schema


@pytest.fixture
def catalog(tmp_path):
    return new_catalog(tmp_path / "w")


def rows(scan):
    return sorted(scan.to_arrow().to_pylist(), key=lambda row: (row["p"], row["k"]))


# -- secrets ------------------------------------------------------------------------------------------------------------

SECRETS = ["open-sesame-1", "open-sesame-2", "open-sesame-3"]
S3 = {"s3.access-key": SECRETS[0], "s3.secret-key": SECRETS[1], "s3.session-token": SECRETS[2], "s3.endpoint": "h:1"}
GIVEN = {
    "s3://bucket/w": S3,
    "s3a://bucket/w": {"fs.s3a.access.key": SECRETS[0], "fs.s3a.secret.key": SECRETS[1]},
    "gs://bucket/w": {"fs.gs.auth.service.account.json.keyfile": SECRETS[0]},
    "abfss://container@account.dfs.core.windows.net/w": {
        "fs.azure.account.key.account.dfs.core.windows.net": SECRETS[0]
    },
    "abfs://c@account.dfs.core.windows.net/w": {
        "fs.azure.account.oauth2.client.id.account.dfs.core.windows.net": "id",
        "fs.azure.account.oauth2.client.secret.account.dfs.core.windows.net": SECRETS[1],
    },
}


def has_no_secret(value):
    texts = [repr(value), str(value)]
    data = pickle.dumps(value)
    return not any(secret in text for secret in SECRETS for text in texts) and not any(
        secret.encode() in data for secret in SECRETS
    )


@pytest.mark.parametrize("url", GIVEN)
def test_no_secret_is_in_a_text_or_pickle_of_anything_public(url):
    catalog = Catalog(*cloud(url, GIVEN[url]))
    root = TableRoot(catalog._metastore._store, f"{url}/d.db/t", Env())
    schema = new_table_schema(Schema([("k", "INT")]), TableSpec(), time_millis=0)
    table = Table(root, schema, "d.t")
    for value in (catalog, table, table.scan(columns=["k"]), table.scan(snapshot_id=3), table.schema, root.store, root):
        assert has_no_secret(value)
    again = pickle.loads(pickle.dumps(table))
    assert (again.location, again.schema) == (table.location, table.schema)


def cloud(url, options):
    from paimon_py.storage.open import open_store

    return open_store(url, options)


class Leaking:
    """A file system whose errors say what they were told."""

    def __getattr__(self, name):
        def fail(*arguments, **named):
            try:
                raise ValueError(f"signed with {SECRETS[1]}")
            except ValueError as error:
                raise PermissionError(f"{name} refused for {SECRETS[0]}") from error

        return fail


def test_no_secret_is_in_an_error_or_its_traceback():
    store, location = cloud("s3://bucket/t", S3)
    store._system = lambda *, once=False: Leaking()
    table = Table(TableRoot(store, location, env()), new_table_schema(Schema([("k", "INT")]), TableSpec(), time_millis=0), "t")
    for call in (
        table.snapshot,
        table.snapshots,
        table.tags,
        lambda: table.scan().to_arrow(),
        lambda: table.write_arrow(pa.table({"k": pa.array([1], pa.int32())})),
        lambda: table.alter(paimon_py.AddColumn("x", "INT")),
    ):
        with pytest.raises(StorageError) as caught:
            call()
        text = "".join(traceback.format_exception(caught.value))
        assert not any(secret in text for secret in SECRETS), text
        assert has_no_secret(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "s3://key:open-sesame-1@bucket/t", "sftp://user:open-sesame-1@host/t", "ftp://user:open-sesame-1@host/t",
        "https://host/t?sig=open-sesame-1", "abfss://c@a.dfs.core.windows.net/t?sv=1&sig=open-sesame-1",
    ],
)  # fmt: skip
def test_a_url_with_a_secret_is_refused_and_not_repeated(url):
    for call in (Table.open, Catalog.open):
        with pytest.raises(UsageError, match="give .* option") as caught:
            call(url)
        assert has_no_secret(caught.value)


@pytest.mark.parametrize(
    "options", [{"s3.access-key": SECRETS[0]}, {**S3, "s3.path.style.access": "perhaps"}, {"s3.secret-key": 7, **S3, "s3.x": 5}]
)
def test_errors_about_options_of_a_store_do_not_repeat_secrets(options):
    with pytest.raises(OptionError) as caught:
        Table.open("s3://bucket/t", options)
    assert has_no_secret(caught.value)


def test_secrets_given_to_open_a_table_are_not_stored_in_it(tmp_path):
    catalog = Catalog.open(tmp_path / "w", {**S3, **QUICK, "table-default.bucket": "2"})
    catalog.create_database("d")
    table = catalog.create_table("d.t", KEYED, primary_key=["p", "k"])
    table.write_arrow(ROWS)
    assert table.options == {"bucket": "2"}
    assert not any(secret.encode() in data for secret in SECRETS for data in files(tmp_path).values())
    for value in (catalog, table, table.scan(), table.snapshot(), *table.scan().splits()):
        assert has_no_secret(value)


# -- pickles ------------------------------------------------------------------------------------------------------------


def elsewhere(pickled):
    catalog, table, scan, snapshot, manifest, tag, (first, *_) = pickle.loads(pickled)
    return [
        catalog.tables("d"),
        table.scan().count(),
        scan.to_arrow().to_pylist(),
        scan.read(first).read_all().num_rows,
        snapshot.id,
        len(manifest.entries()),
        tag.snapshot.manifests()[0].name,
    ]


def test_public_values_work_in_another_process(catalog):
    table = keyed_table(catalog)
    scan = table.scan(where=col("k") >= 1, columns=["k", "p"], limit=5)
    values = (catalog, table, scan, table.snapshot(), table.snapshot().manifests()[0], table.tags()[0], scan.splits())
    pickled = pickle.dumps(values)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(elsewhere, (pickled,)) == elsewhere(pickled)


def test_values_are_equal_after_a_trip(catalog):
    table = keyed_table(catalog)
    snapshot, tag = table.snapshot(), table.tags()[0]
    manifest, split = snapshot.manifests()[0], table.scan().splits()[0]
    for value in (snapshot, tag, manifest, split, manifest.entries()[0], table.schema):
        assert pickle.loads(pickle.dumps(value)) == value
    for value in (snapshot, tag, manifest):
        assert hash(pickle.loads(pickle.dumps(value))) == hash(value)
    assert Split.from_bytes(bytes(split)) == split
    assert isinstance(snapshot, Snapshot) and isinstance(manifest, Manifest) and isinstance(tag, Tag)
    with table.writer() as writer:
        writer.write_arrow(ROWS)
        changes = writer.changes()
    assert Changes.from_bytes(bytes(changes)) == pickle.loads(pickle.dumps(changes)) == changes
    writer.discard(changes)


def test_errors_keep_what_they_know_in_a_pickle(catalog):
    table = keyed_table(catalog)
    with refused(table, paimon_py.SnapshotNotFoundError) as caught:
        table.snapshot(9)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again), again.snapshot_id, again.kind) == (
        type(caught.value), str(caught.value), 9, "snapshot-not-found",
    )  # fmt: skip


def test_texts_say_what_a_value_is(catalog):
    table = keyed_table(catalog)
    assert repr(table) == (
        "Table('d.keyed', columns=[p, k, v], primary_key=['p', 'k'], partition_by=['p'], "
        f"location={table.location!r})"
    )
    assert repr(catalog) == f"Catalog({catalog.warehouse!r})"
    assert repr(table.tags()) == "[Tag('first', snapshot_id=1)]"
    assert "id=2, kind=APPEND" in repr(table.snapshot())
    assert repr(table.scan(tag="first", columns=["v"], limit=3)) == (
        f"Scan({table.location!r}, tag='first', columns=['v'], limit=3)"
    )
    assert repr(table.scan().splits()[0]).startswith("Split(snapshot_id=2, bucket=")
    with table.writer() as writer:
        assert repr(writer).startswith(f"Writer({table.location!r}")
        assert LSMWriter.__name__ == "LSMWriter" and LSMWriter.__doc__


# -- an empty table -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("primary_key", [["p", "k"], []])
@pytest.mark.parametrize("state", ["new", "truncated", "never matches"])
def test_every_verb_works_on_nothing(catalog, primary_key, state):
    table = catalog.create_table(
        "d.t", KEYED, primary_key=primary_key, options={"bucket": "1"} if primary_key else {}
    )
    if state != "new":
        table.write_arrow(ROWS)
    if state == "truncated":
        table.truncate()
    scan = table.scan(where="k > 100" if state == "never matches" else None)
    schema = scan.schema
    assert schema == KEYED
    assert scan.to_arrow().equals(schema.empty_table())
    assert scan.to_reader().read_all().equals(schema.empty_table())
    assert scan.to_pandas().shape == (0, 3)
    assert scan.to_polars().shape == (0, 3)
    with duckdb.connect() as connection:
        assert scan.to_duckdb(connection, "t").fetchall() == []
        assert connection.sql("SELECT count(*), min(v) FROM t").fetchall() == [(0, None)]
    assert scan.count() == 0
    assert scan.head(3).num_rows == 0
    assert pa.RecordBatchReader.from_stream(scan).read_all().num_rows == 0
    assert "snapshot" in str(scan.explain())
    if state != "never matches":
        assert scan.splits() == []
    assert table.scan(columns=[]).to_arrow().shape == ((2, 0) if state == "never matches" else (0, 0))
    if state == "new":
        assert (table.snapshot(), table.snapshots(), table.tags()) == (None, [], [])
        assert table.truncate().snapshot_id == 1
        assert table.write_arrow(scan).snapshot_id is None
    else:
        assert table.write_arrow(scan).snapshot_id is None


# -- input --------------------------------------------------------------------------------------------------------------


def as_duckdb():
    return duckdb.sql("SELECT 3::INTEGER AS p, 4::BIGINT AS k, 'z' AS v")


INPUTS = {
    "pyarrow table": lambda: pa.table({"p": pa.array([3], pa.int32()), "k": [4], "v": ["z"]}),
    "record batch": lambda: pa.record_batch({"v": pa.array(["z"]), "k": pa.array([4]), "p": pa.array([3], pa.int32())}),
    "reader": lambda: pa.table({"p": pa.array([3], pa.int32()), "k": [4], "v": ["z"]}).to_reader(),
    "pandas": lambda: pd.DataFrame({"p": pd.Series([3], dtype="int32"), "k": [4], "v": ["z"]}),
    "pandas with an index": lambda: pd.DataFrame({"p": [3], "k": [4], "v": ["z"]}, index=[9]).astype({"p": "int32"}),
    "polars": lambda: pl.DataFrame({"p": [3], "k": [4], "v": ["z"]}, schema_overrides={"p": pl.Int32}),
    "duckdb": as_duckdb,
    "struct array": lambda: pa.array([{"p": 3, "k": 4, "v": "z"}], pa.struct([("p", pa.int32()), ("k", pa.int64()), ("v", pa.string())])),
    "views and dictionaries": lambda: pa.table(
        {"p": pa.array([3], pa.int8()), "k": pa.array([4], pa.int32()), "v": pa.array(["z"]).dictionary_encode()}
    ),
}


@pytest.mark.parametrize("kind", INPUTS)
def test_every_library_may_hand_rows_over(catalog, kind):
    table = keyed_table(catalog)
    assert table.write_arrow(INPUTS[kind]()).row_count == 1
    assert rows(table.scan())[-1] == {"p": 3, "k": 4, "v": "z"}


def test_a_scan_may_be_written_into_its_own_table(catalog):
    table = append_table(catalog)
    assert table.write_arrow(table.scan()).row_count == 1
    assert table.write_arrow(table.scan(), overwrite={}).row_count == 2
    assert table.scan().count() == 2


def test_a_reader_is_consumed_as_it_goes(tmp_path):
    catalog = new_catalog(tmp_path / "w")
    table = catalog.create_table(
        "d.t", pa.schema([("i", pa.int64())]), options={"write-buffer-size": "1 mb", "target-file-size": "64 kb"}
    )
    seen = []

    def batches():
        for number in range(40):
            seen.append(sum(path.endswith(".parquet") for path in files(table.location)))
            yield pa.record_batch({"i": pa.array(range(number * 50_000, (number + 1) * 50_000), pa.int64())})

    result = table.write_arrow(pa.RecordBatchReader.from_batches(pa.schema([("i", pa.int64())]), batches()))
    assert seen[-1] > 5, "files were rolled while the input was still being read"
    assert result.row_count == 2_000_000 and result.file_count >= seen[-1]


@pytest.mark.parametrize("data", [ROWS.slice(0, 0), ROWS.schema.empty_table(), ROWS.to_pandas().head(0)], ids=lambda d: type(d).__name__)
def test_no_rows_make_no_snapshot(catalog, data):
    table = keyed_table(catalog)
    data = pa.Table.from_pandas(data, schema=ROWS.schema, preserve_index=False) if isinstance(data, pd.DataFrame) else data
    before = files(table.location)
    result = table.write_arrow(data)
    assert (result.snapshot_id, result.row_count, result.file_count) == (None, 0, 0)
    with table.writer() as writer:
        writer.write_arrow(data)
        changes = writer.changes()
    assert changes.is_empty and table.commit(changes, user="u", identifier=1).snapshot_id is None
    assert table.write_arrow(data, overwrite="dynamic").snapshot_id is None
    assert files(table.location) == before
    assert table.write_arrow(data, overwrite={"p": 1}).snapshot_id == 3
    assert rows(table.scan()) == [{"p": 2, "k": 2, "v": "y"}]


# -- idempotence --------------------------------------------------------------------------------------------------------


def test_the_same_commit_again_does_nothing_and_says_so(catalog):
    table = keyed_table(catalog)
    with table.writer() as writer:
        writer.write_arrow(ROWS)
        changes = bytes(writer.changes())
    first = table.commit(changes, user="job", identifier=7)
    after = files(table.location)
    for again in (table, reopened(table)):
        result = again.commit(changes, user="job", identifier=7)
        assert result.already_committed and result.snapshot_id == first.snapshot_id == 3
    assert files(table.location) == after
    assert [snapshot.commit_identifier for snapshot in table.snapshots()][-1] == 7


def test_an_identifier_that_was_committed_does_nothing_and_a_smaller_one_is_refused(catalog):
    """Java takes a smaller identifier than the last one of a user for a repetition, and drops its rows."""
    table = keyed_table(catalog)
    for identifier in (5, 9):
        with table.writer() as writer:
            writer.write_arrow(ROWS)
            table.commit(writer.changes(), user="job", identifier=identifier)
    before = [snapshot.id for snapshot in table.snapshots()]
    for identifier in (9, 5, 3, 0):
        with table.writer() as writer:
            writer.write_arrow(ROWS)
            changes = writer.changes()
        if identifier in (3, 0):
            with pytest.raises(UsageError, match="last number of 'job' is 9"):
                table.commit(changes, user="job", identifier=identifier)
            writer.discard(changes)
        else:
            assert table.commit(changes, user="job", identifier=identifier).already_committed
        for bucket in changes.buckets:
            assert not any(file.name in path for path in files(table.location) for file in bucket.written.added)
    assert [snapshot.id for snapshot in table.snapshots()] == before
    with table.writer() as writer:
        writer.write_arrow(ROWS)
        assert not table.commit(writer.changes(), user="other", identifier=3).already_committed


def test_a_batch_commit_of_the_same_changes_again_adds_nothing(catalog):
    table = append_table(catalog)
    with table.writer() as writer:
        writer.write_arrow(pa.table({"i": pa.array([5], pa.int32())}))
        changes = bytes(writer.changes())
    assert table.commit(changes).snapshot_id == 2
    assert reopened(table).commit(changes).already_committed
    assert table.scan(where="i = 5").count() == 1


# -- memory -------------------------------------------------------------------------------------------------------------


def test_a_warehouse_in_memory_does_everything():
    catalog = Catalog.open("memory://promises/w", {"table-default.bucket": "2"})
    catalog.create_database("d", exist_ok=True)
    table = catalog.create_table("d.t", KEYED, primary_key=["p", "k"], partition_by=["p"])
    table.write_arrow(ROWS, watermark=3)
    table.create_tag("t1")
    table.write_arrow(ROWS.slice(0, 1).append_column("_row_kind", pa.array(["-D"])))
    table.alter(paimon_py.AddColumn("w", "TIMESTAMP(9)"), paimon_py.RenameColumn("v", "vv"))
    assert rows(table.scan()) == [{"p": 2, "k": 2, "vv": "y", "w": None}]
    assert rows(table.scan(tag="t1")) == ROWS.to_pylist()
    assert pickle.loads(pickle.dumps(catalog)).table("d.t").scan().count() == 1
    assert Table.open("memory://promises/w/d.db/t").scan(timestamp=table.snapshot(1).time).count() == 2
    table.drop_partitions([{"p": 2}])
    assert table.scan().count() == 0
    catalog.rename_table("d.t", "d.u")
    assert catalog.tables("d") == ["u"]
    catalog.create_table("d.wide", Schema(WIDE), options={"bucket": "-1"}).write_arrow(pa.table({"s": ["abc", None]}))
    assert catalog.table("d.wide").scan().to_arrow()["q"].to_pylist() == [7, 7]
    catalog.drop_database("d", cascade=True)
    assert catalog.databases() == []


def test_datetimes_and_numbers_name_the_same_moment(catalog):
    table = keyed_table(catalog)
    millis = table.snapshot(2).time_millis
    moment = datetime.datetime.fromtimestamp(millis / 1000, datetime.timezone.utc)
    assert table.scan(timestamp=millis).to_arrow().equals(table.scan(timestamp=moment).to_arrow())
