"""Reads of two branches: a partition comes whole from the one that comes first, or from the other."""

from __future__ import annotations

import pickle
import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from unit.commit.support import Clock

from paimon_py import (
    AddColumn,
    Catalog,
    OptionError,
    PaimonWarning,
    RemoveOption,
    SetOption,
    TagNotFoundError,
    UpdateColumnNullability,
    UsageError,
    col,
)
from paimon_py.env import Env, SerialPool
from paimon_py.scan.split import Split
from paimon_py.storage.memory_store import MemoryStore

FALLBACK, PRIMARY = "scan.fallback-branch", "scan.primary-branch"


def rows(**partitions):
    """Rows of partitions: `a=[1, 2]` gives two keys in partition a."""
    pairs = [(key, name) for name, keys in partitions.items() for key in keys]
    return pa.table({"k": pa.array([key for key, _ in pairs], pa.int32()), "p": [name for _, name in pairs]})


def made(*, keyed=True, env=None, **options):
    catalog = Catalog(MemoryStore(), "/w", env=env)
    catalog.create_database("d")
    fields = pa.schema([pa.field("k", pa.int32(), nullable=not keyed), pa.field("p", pa.string(), nullable=not keyed)])
    return catalog.create_table(
        "d.t", fields, primary_key=["p", "k"] if keyed else (), partition_by=["p"],
        options={"bucket": "1" if keyed else "-1", **options},
    )  # fmt: skip


def with_branch(option=FALLBACK, **given):
    table = made(**given)
    branch = table.create_branch("b", from_=None)
    table.alter(SetOption(option, "b"))
    return table, branch


def pairs(scan):
    found = scan.to_arrow() if hasattr(scan, "to_arrow") else pa.Table.from_batches(scan)
    return sorted((row["k"], row["p"]) for row in found.to_pylist())


@pytest.mark.parametrize("keyed", [True, False])
def test_partitions_that_a_branch_lacks_come_from_the_other(keyed):
    table, branch = with_branch(keyed=keyed)
    branch.write_arrow(rows(a=[10], b=[11], c=[12]))
    assert pairs(table.scan()) == [(10, "a"), (11, "b"), (12, "c")]
    table.write_arrow(rows(a=[1, 2]))
    assert pairs(table.scan()) == [(1, "a"), (2, "a"), (11, "b"), (12, "c")]
    assert pairs(branch.scan()) == [(10, "a"), (11, "b"), (12, "c")]
    assert table.scan().count() == 4 and table.scan(where="k > 10").count() == 2
    assert pairs(table.scan(where=(col("p") == "a") & (col("k") == 10))) == []
    assert pairs(table.scan(where=col("p") != "a", columns=["p", "k"])) == [(11, "b"), (12, "c")]
    assert table.scan(limit=3).to_arrow().num_rows == table.scan().head(3).num_rows == 3
    assert table.scan(order_by=("k", "descending"), limit=3).to_arrow()["k"].to_pylist() == [12, 11, 2]
    assert table.scan(order_by="k", limit=3, columns=["p"]).to_arrow()["p"].to_pylist() == ["a", "a", "b"]
    table.alter(RemoveOption(FALLBACK))
    assert pairs(table.scan()) == [(1, "a"), (2, "a")]
    assert pairs(table.scan(options={FALLBACK: "b"})) == [(1, "a"), (2, "a"), (11, "b"), (12, "c")]


def test_the_partitions_of_a_primary_branch_come_first():
    table, branch = with_branch(PRIMARY)
    table.write_arrow(rows(a=[1], d=[4]))
    branch.write_arrow(rows(a=[10], b=[11]))
    assert pairs(table.scan()) == [(4, "d"), (10, "a"), (11, "b")]
    assert table.scan(order_by="k", limit=1).to_arrow()["k"].to_pylist() == [4]


def test_splits_travel_and_say_of_which_branch_they_are():
    table, branch = with_branch()
    table.write_arrow(rows(a=[1]))
    branch.write_arrow(rows(a=[10], b=[11], c=[12]))
    scan = table.scan(where=col("k") != 12)
    splits = scan.splits()
    assert sorted(split.branch for split in splits) == ["b", "main"]
    far, there = pickle.loads(pickle.dumps(scan)), [Split.from_bytes(bytes(split)) for split in splits]
    assert sorted(pair for split in there for pair in pairs(far.read(split))) == [(1, "a"), (11, "b")]
    table.branch("b").alter(SetOption("write-only", "true"))
    with pytest.raises(UsageError, match="schema 0 of branch 'b', this scan those of schema 1 of 'b'"):
        table.scan().read(next(split for split in splits if split.branch == "b")).read_all()
    with pytest.raises(UsageError, match="of branch 'b', this scan those of schema 2 of 'main'"):
        table.alter(RemoveOption(FALLBACK))
        table.scan(options={}).read(next(split for split in splits if split.branch == "b"))
    explained = scan.explain(analyze=True)
    assert explained.analysis.rows_returned == 2 and explained.file_count == 2


@pytest.mark.parametrize("option", [FALLBACK, PRIMARY])
def test_the_buckets_of_a_partition_come_from_the_same_branch(option):
    table, branch = with_branch(option, bucket="3")
    first, second = (table, branch) if option == FALLBACK else (branch, table)
    first.write_arrow(rows(a=[1], c=range(20)))
    second.write_arrow(rows(a=range(10, 30), b=range(30, 50)))
    whole = pairs(table.scan())
    assert {pair for pair in whole if pair[1] == "a"} == {(1, "a")}
    buckets = [{"scan.bucket": str(bucket)} for bucket in range(3)]
    for asked in ({}, {"where": col("k") > 12}):
        parts = [pairs(table.scan(options=bucket, **asked)) for bucket in buckets]
        assert sorted(pair for part in parts for pair in part) == pairs(table.scan(**asked))
    ordered = [pair for bucket in buckets for pair in pairs(table.scan(options=bucket, order_by="k", limit=9))]
    assert set(ordered) <= set(whole)


def test_a_partition_whose_rows_are_all_deleted_is_still_of_the_branch():
    table, branch = with_branch()
    table.write_arrow(rows(a=[1]))
    branch.write_arrow(rows(a=[10], b=[11]))
    table.delete("k = 1")
    assert pairs(table.scan()) == [(11, "b")]
    table.drop_partitions([{"p": "a"}])
    assert pairs(table.scan()) == [(10, "a"), (11, "b")]


def test_the_states_of_both_branches_belong_together():
    clock = Clock(1_000_000_000_000)
    table, branch = with_branch(env=Env(clock, None, SerialPool()))
    moments = []
    for number, target in enumerate([table, branch, table, branch]):
        clock.sleep(10)
        target.write_arrow(rows(**{f"p{number}": [number]}))
        moments.append(clock.millis())
    assert [len(pairs(table.scan(timestamp=moment))) for moment in moments] == [1, 2, 3, 4]
    # a snapshot stands for its time; Java takes the first one of a branch that is younger
    assert pairs(table.scan(snapshot_id=1)) == [(0, "p0"), (1, "p1")]
    assert pairs(table.scan(options={"scan.snapshot-id": "2"})) == [(0, "p0"), (1, "p1"), (2, "p2")]
    assert pairs(table.scan(options={"scan.version": "2"})) == [(0, "p0"), (1, "p1"), (2, "p2")]
    table.create_tag("t", snapshot_id=1)
    with pytest.raises(TagNotFoundError):
        table.scan(tag="t").to_arrow()
    branch.create_tag("t", snapshot_id=2)
    assert pairs(table.scan(tag="t")) == [(0, "p0"), (1, "p1"), (3, "p3")]


def test_a_time_before_this_branch_began():
    clock = Clock(1_000_000_000_000)
    table, branch = with_branch(env=Env(clock, None, SerialPool()))
    branch.write_arrow(rows(a=[1]))
    moment = clock.millis()
    clock.sleep(10)
    table.write_arrow(rows(b=[2]))
    assert pairs(table.scan(timestamp=moment)) == [(1, "a")]


def test_changes_streams_and_rewrites_are_of_the_branch_alone():
    table, branch = with_branch()
    branch.write_arrow(rows(b=[11]))
    table.write_arrow(rows(a=[1]))
    assert table.changes(0).to_arrow()["k"].to_pylist() == [1]
    assert table.stream(from_="earliest").poll().to_arrow()["k"].to_pylist() == [1]
    assert table.delete("k = 11").deleted == 0
    assert pairs(table.scan()) == [(1, "a"), (11, "b")]
    assert pairs(table.system("ro").scan()) == []
    branch.compact(full=True)
    assert pairs(table.system("ro").scan()) == [(11, "b")]
    assert sorted(table.system("audit_log").scan().to_arrow()["k"].to_pylist()) == [1, 11]


def test_branches_with_other_columns_are_refused():
    table, branch = with_branch()
    branch.write_arrow(rows(b=[11]))
    branch.alter(AddColumn("more", "INT"))
    with pytest.raises(UsageError, match="cannot be read from the branches 'main' and 'b'"):
        table.scan()
    table.alter(AddColumn("more", "INT"))
    assert pairs(table.scan()) == [(11, "b")]
    table.alter(AddColumn("x", "INT"), AddColumn("y", "INT"))
    branch.alter(AddColumn("y", "INT"), AddColumn("x", "INT"))
    with pytest.raises(UsageError, match="cannot be read"):
        table.branch("main").scan()


def test_columns_that_may_be_null_in_one_branch_alone():
    table = made(keyed=False)
    table.create_branch("b").write_arrow(rows(b=[11]))
    table.alter(SetOption(FALLBACK, "b"), SetOption("alter-column-null-to-not-null.disabled", "false"))
    table.alter(UpdateColumnNullability("k", False))
    assert pairs(table.scan()) == [(11, "b")] and not table.scan().schema.field("k").nullable
    assert table.scan(order_by="k", limit=1).to_arrow().schema == table.scan().schema


def test_options_that_name_no_branch():
    table = made()
    for option in (FALLBACK, PRIMARY):
        with pytest.raises(OptionError, match="branch 'nix' does not exist"):
            table.alter(SetOption(option, "nix"))
        with pytest.raises(OptionError, match="branch 'nix' does not exist"):
            made(**{option: "nix"})
        with pytest.warns(PaimonWarning, match="'nix'"):
            assert pairs(table.scan(options={option: "nix"})) == []
    table.create_branch("b")
    with pytest.raises(OptionError, match="not both"):
        table.alter(SetOption(FALLBACK, "b"), SetOption(PRIMARY, "b"))
    table.alter(SetOption(FALLBACK, "b"))
    for verb in (table.delete_branch, lambda name: table.rename_branch(name, "c")):
        with pytest.raises(UsageError, match=r"scan\.fallback-branch names the branch 'b'"):
            verb("b")
    table.alter(RemoveOption(FALLBACK), SetOption(PRIMARY, "b"))
    with pytest.raises(UsageError, match=r"scan\.primary-branch names the branch 'b'"):
        table.delete_branch("b")


def test_a_branch_that_names_itself():
    table, _ = with_branch()
    table.write_arrow(rows(a=[1]))
    branch = table.create_branch("c", from_=None)
    branch.alter(SetOption(FALLBACK, "main"))
    assert pairs(branch.scan()) == [(1, "a")]
    branch.alter(SetOption(FALLBACK, "c"))
    assert pairs(branch.scan()) == []


@pytest.mark.parametrize("seed", range(6))
def test_any_partitions_of_any_branches(seed):
    rng = random.Random(seed)
    option = rng.choice([FALLBACK, PRIMARY])
    table, branch = with_branch(option, keyed=rng.random() < 0.5)
    held = {"main": {}, "b": {}}
    for _ in range(12):
        name = rng.choice(["main", "b"])
        partition, key = rng.choice("abcdef"), rng.randrange(100)
        target = table if name == "main" else branch
        if rng.random() < 0.25 and held[name].pop(partition, None):
            target.drop_partitions([{"p": partition}])
        else:
            target.write_arrow(rows(**{partition: [key]}), overwrite={"p": partition})
            held[name][partition] = key
        first, second = ("main", "b") if option == FALLBACK else ("b", "main")
        expected = {**held[second], **held[first]}
        assert pairs(table.scan()) == sorted((key, name) for name, key in expected.items())
        least = rng.randrange(100)
        assert pairs(table.scan(where=col("k") >= least)) == sorted(
            (key, name) for name, key in expected.items() if key >= least
        )
        found = table.scan(order_by=[("k", "descending"), "p"], limit=2).to_arrow()
        ordered = sorted(((-key, name) for name, key in expected.items()))[:2]
        assert [(-row["k"], row["p"]) for row in found.to_pylist()] == ordered


@pytest.mark.parametrize("option", [FALLBACK, PRIMARY])
def test_libraries_select_columns_and_rows_of_both_branches(option):
    table, branch = with_branch(option)
    table.write_arrow(rows(a=[1, 2]))
    branch.write_arrow(rows(b=[11, 12]))
    dataset = table.scan().to_dataset()
    assert sorted(dataset.scanner(columns=["k"]).to_reader().read_all()["k"].to_pylist()) == [1, 2, 11, 12]
    found = dataset.scanner(columns=["p"], filter=pc.field("k") > 11).to_reader().read_all()
    assert found.to_pydict() == {"p": ["b"]}
