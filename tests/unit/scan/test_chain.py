"""Chain tables: which partitions are merged, and reads of a table of Java by parts, with conditions and in other processes."""

from __future__ import annotations

import pickle
import tarfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from paimon_py import Catalog, OptionError, UnsupportedError, UsageError
from paimon_py.codec.binary_row import encode_few
from paimon_py.scan.chain_plan import links_of
from paimon_py.scan.split import Split
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.types import Atomic, Field, Root

CORPUS = Path(__file__).parents[2] / "golden" / "corpus"
DAILY = {"partition.timestamp-pattern": "$dt", "partition.timestamp-formatter": "yyyyMMdd"}


def schema_of(options, *keys):
    fields = tuple(Field(number, name, Atomic(Root.VARCHAR, length=2_147_483_647)) for number, name in enumerate(keys))
    return TableSchema(id=0, fields=fields, highest_field_id=9, partition_keys=keys, options=options)


def linked(options, snapshots, deltas, wanted=None, keys=("dt",)):
    """The links of partitions, given and returned by their values."""
    schema = schema_of(options, *keys)
    types = [field.type for field in schema.fields]
    values = [value if isinstance(value, tuple) else (value,) for value in (*snapshots, *deltas)]
    encoded = encode_few([pa.array(column, pa.string()) for column in zip(*values)], types)
    rows = dict(zip((*snapshots, *deltas), encoded))
    names = {row: value for value, row in rows.items()}
    found = links_of(
        schema, [rows[one] for one in snapshots], [rows[one] for one in deltas],
        [rows[one] for one in (deltas if wanted is None else wanted)],
    )  # fmt: skip
    return [(names[link.partition], names.get(link.anchor), [names[one] for one in link.deltas]) for link in found]


def test_a_partition_is_the_nearest_older_one_and_the_changes_since():
    assert linked(DAILY, ["20250110", "20250112"], ["20250114", "20250111", "20250112", "20250113"], ["20250113", "20250111", "20250114"]) == [
        ("20250111", "20250110", ["20250111"]),
        ("20250113", "20250112", ["20250113"]),
        ("20250114", "20250112", ["20250113", "20250114"]),
    ]
    assert linked(DAILY, ["20250105"], ["20250102", "20250101"]) == [
        ("20250101", None, ["20250101"]),
        ("20250102", None, ["20250101", "20250102"]),
    ]
    assert linked(DAILY, ["20250105"], []) == []


def test_groups_have_chains_of_their_own():
    options = {**DAILY, "chain-table.chain-partition-keys": "dt"}
    snapshots, deltas = [("x", "20250101")], [("x", "20250102"), ("y", "20250102"), ("y", "20250103")]
    assert linked(options, snapshots, deltas, keys=("g", "dt")) == [
        (("x", "20250102"), ("x", "20250101"), [("x", "20250102")]),
        (("y", "20250102"), None, [("y", "20250102")]),
        (("y", "20250103"), None, [("y", "20250102"), ("y", "20250103")]),
    ]


def test_partitions_without_a_place_in_the_chain_are_refused():
    with pytest.raises(UnsupportedError, match="NULL in a partition key"):
        linked(DAILY, [], [None, "20250101"])
    with pytest.raises(UnsupportedError, match="another place in time"):
        linked({**DAILY, "partition.timestamp-formatter": "ddMMyyyy"}, ["01092024"], ["05082024"])
    with pytest.raises(UnsupportedError, match="is no time"):
        linked(DAILY, ["20250101"], ["first"])
    for options in ({**DAILY, "chain-table.chain-partition-keys": "v"}, {**DAILY, "partition.timestamp-pattern": "$day"}):
        with pytest.raises(OptionError):
            linked(options, ["20250101"], ["20250102"])


@pytest.fixture
def table(tmp_path):
    with tarfile.open(CORPUS / "chain-daily" / "warehouse.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    (warehouse,) = {path.parent for path in tmp_path.rglob("*.db")}
    return Catalog.open(str(warehouse)).table("db.t")


def pairs(batches):
    found = batches if isinstance(batches, pa.Table) else batches.read_all()
    return sorted((row["dt"], row["k"]) for row in found.to_pylist())


def test_splits_of_a_chain_are_read_elsewhere(table):
    scan = table.scan(where="k < '4'")
    splits = scan.splits()
    assert any(split.chained for split in splits)
    far, there = pickle.loads(pickle.dumps(scan)), [Split.from_bytes(bytes(split)) for split in splits]
    assert sorted(pair for split in there for pair in pairs(far.read(split))) == pairs(scan.to_arrow())
    chained = next(split for split in splits if split.chained)
    with pytest.raises(UsageError, match="merges branches of a chain table"):
        table.branch("delta").scan().read(chained)
    explained = scan.explain(analyze=True)
    assert explained.analysis.rows_returned == scan.count() == scan.to_arrow().num_rows
    assert not all(split.raw for split in splits)


def test_libraries_select_columns_and_rows_of_a_chain(table):
    whole = table.scan().to_arrow()
    dataset = table.scan().to_dataset()
    assert sorted(dataset.scanner(columns=["dt"]).to_reader().read_all()["dt"].to_pylist()) == sorted(whole["dt"].to_pylist())
    found = dataset.scanner(columns=["k", "dt"], filter=pc.field("v") == "a2").to_reader().read_all()
    assert pairs(found) == [("20250811", "1")] == pairs(table.scan(where="v = 'a2'").to_arrow())


def test_states_and_parts_that_have_no_meaning_for_a_chain_are_refused(table):
    for asked in ({"snapshot_id": 1}, {"tag": "x"}, {"watermark": 1}, {"options": {"scan.bucket": "0"}}):
        with pytest.raises(UnsupportedError, match="of a chain table as a whole"):
            table.scan(**asked)
    with pytest.raises(UnsupportedError, match="chain-table"):
        table.system("ro").scan()
    assert table.scan(timestamp=0).to_arrow().num_rows == 0
    assert table.branch("delta").scan(snapshot_id=1).count() == 2
