"""`catalog.import_files`: what is brought, once, what does not fit, and that the source stays as it is."""

from __future__ import annotations

import contextlib
import datetime
import pickle
from functools import partial
from urllib.parse import unquote

import pyarrow as pa
import pytest
from unit.imports.source import partitioned, rows, state, write_avro, write_orc, write_parquet
from unit.public import new_catalog

from paimon_py import (
    AddColumn,
    Catalog,
    CommitConflictError,
    CorruptionError,
    DropColumn,
    PaimonError,
    RemoveOption,
    Schema,
    SchemaError,
    Table,
    UnsupportedError,
    UsageError,
    col,
    sql,
)
from paimon_py.imports import source_files, verb
from paimon_py.imports.ledger import Ledger
from paimon_py.spec.referenced_paths import REFERENCED


@pytest.fixture
def catalog(tmp_path):
    return new_catalog(str(tmp_path / "warehouse"))


@pytest.fixture
def lake(tmp_path):
    return partitioned(tmp_path / "lake")


def ids(table):
    return sorted(table.to_arrow()["id"].to_pylist())


FAR = [datetime.datetime(9999, 1, 1), datetime.datetime(1000, 1, 1, 0, 0, 0, 7), None]
ALL = sorted([*range(6), *range(10, 16), *range(20, 26)])


def test_imported_files_stay_at_their_source(catalog, lake):
    before = state(lake)
    result = catalog.import_files("d.t", lake)
    assert (result.files, result.rows, result.partitions, result.known_files) == (6, 18, 3, 0)
    assert result.is_new and result.by_reference and not result.dry_run and result.snapshot_id == 1
    assert result.size_bytes == sum(len(data) for path, data in before.items() if path.endswith("parquet"))
    table = catalog.table("d.t")
    assert ids(table) == ALL and table.schema.partition_keys == ("dt",)
    assert ids(table) == sorted(pickle.loads(pickle.dumps(table)).to_arrow()["id"].to_pylist())
    days = table.to_arrow().group_by("dt").aggregate([("id", "count")]).sort_by("dt").to_pylist()
    assert days == [{"dt": "2024-01-01", "id_count": 6}, {"dt": "2024-01-02", "id_count": 6}, {"dt": None, "id_count": 6}]
    assert table.scan(where="dt = '2024-01-02' AND id > 13").to_arrow()["id"].to_pylist() == [14, 15]
    found = table.scan(where="dt = '2024-01-02'").to_arrow().select(rows(0).schema.names).sort_by("id")
    assert found.to_pylist() == pa.concat_tables([rows(10), rows(13)]).to_pylist()
    assert not [path for path in table_files(table) if path.endswith("parquet")]
    assert state(lake) == before


def table_files(table):
    from pathlib import Path

    return [path.as_posix() for path in Path(table.location).rglob("*")]


def test_a_dry_run_reports_everything_and_changes_nothing(catalog, lake):
    write_parquet(lake / "dt=2024-01-03" / "odd.parquet", pa.table({"id": ["x"]}))
    (lake / "dt=2024-01-03" / "broken.parquet").write_bytes(b"PAR1 no file")
    (lake / "dt=2024-01-03" / "readme.txt").write_text("no rows")
    result = catalog.import_files("d.t", lake, partition_by={"dt": "DATE"}, dry_run=True)
    assert (result.files, result.rows, result.dry_run, result.is_new, result.snapshot_id) == (6, 18, True, True, None)
    assert [(field.name, field.type.root.value) for field in result.columns][-2:] == [("at", "TIMESTAMP"), ("dt", "DATE")]
    assert {misfit.path.rpartition("/")[2]: misfit.reason for misfit in result.misfits}.keys() == {"odd.parquet", "broken.parquet", "readme.txt"}
    assert "STRING in the file and BIGINT in the table" in next(each.reason for each in result.misfits if "odd" in each.path)
    assert catalog.tables("d") == []
    with pytest.raises(SchemaError, match=r"3 files do not fit; copy=True"):
        catalog.import_files("d.t", lake)
    assert catalog.tables("d") == []


@pytest.mark.parametrize("copy", [False, True])
def test_a_second_call_imports_the_files_added_since(catalog, lake, copy):
    bring = partial(catalog.import_files, "d.t", lake, copy=copy)
    assert bring().files == 6
    again = bring()
    assert (again.files, again.known_files, again.snapshot_id, again.is_new) == (0, 6, None, False)
    write_parquet(lake / "dt=2024-01-02" / "late.parquet", rows(100))
    assert bring(dry_run=True).files == 1
    assert (bring().files, bring().known_files) == (1, 7)
    table = catalog.table("d.t")
    assert ids(table) == [*ALL, 100, 101, 102]
    table.compact(full=True)
    table.write_arrow(pa.table({"id": [7]}), overwrite={})
    table.expire_snapshots(retain_min=1, retain_max=1)
    assert (bring().files, ids(table)) == (0, [7])


def test_nothing_at_the_source_is_ever_deleted(catalog, lake):
    before = state(lake)
    catalog.import_files("d.t", lake)
    table = catalog.table("d.t")
    table.create_tag("whole")
    table.create_branch("b", from_="whole")
    table.delete("id = 3")
    table.update("id = 4", {"s": "changed"})
    table.compact(full=True)
    table.delete_tag("whole")
    table.delete_branch("b")
    table.drop_partitions([{"dt": "2024-01-01"}])
    table.truncate()
    table.expire_snapshots(retain_min=1, retain_max=1)
    assert [snapshot.id for snapshot in table.snapshots()] == [table.snapshot().id]
    old = datetime.timedelta(seconds=1)
    table.remove_orphans(older_than=old, dry_run=False)
    catalog.remove_orphans(older_than=old, dry_run=False)
    table.purge_files()
    assert state(lake) == before
    catalog.import_files("d.u", lake)
    other = catalog.table("d.u")
    other.rollback_to(1)
    other.alter(RemoveOption(REFERENCED))
    other = catalog.table("d.u")
    other.delete("id < 100")
    other.expire_snapshots(retain_min=1, retain_max=1)
    other.compact(full=True)
    for name in ("d.t", "d.u"):
        catalog.drop_table(name)
    catalog.drop_database("d", cascade=True)
    assert state(lake) == before


def test_deletion_vectors_of_files_with_one_name(catalog, lake):
    catalog.import_files("d.t", lake, table_options={"deletion-vectors.enabled": "true"})
    for directory in ("a", "b"):
        write_parquet(lake / "dt=2024-01-01" / directory / "part-0.parquet", rows(50 if directory == "a" else 60))
    catalog.import_files("d.t", lake)
    table = catalog.table("d.t")
    table.delete("id IN (50, 61, 0)")
    assert ids(table) == sorted({*ALL, *range(50, 53), *range(60, 63)} - {50, 61, 0})


def test_orc_and_avro(catalog, tmp_path):
    partitioned(tmp_path / "orc", write_orc, "orc")
    catalog.import_files("d.o", tmp_path / "orc")
    assert ids(catalog.table("d.o")) == ALL
    for number in range(2):
        write_avro(tmp_path / "avro" / f"{number}.avro", number * 3)
    result = catalog.import_files("d.a", tmp_path / "avro")
    table = catalog.table("d.a")
    assert (result.rows, ids(table)) == (6, list(range(6)))
    first = table.scan(where="id = 0").to_arrow().to_pylist()[0]
    assert (first["s"], str(first["n"]), first["d"], first["at"].isoformat()) == ("x", "1.25", None, "2024-01-01T00:00:00+00:00")
    catalog.import_files("d.c", tmp_path / "avro", copy=True, primary_key=["id"], table_options={"bucket": "2"})
    assert catalog.table("d.c").to_arrow().sort_by("id") == table.to_arrow().sort_by("id").cast(catalog.table("d.c").to_arrow().schema)


def test_files_without_an_extension(catalog, tmp_path):
    write_parquet(tmp_path / "hive" / "000000_0", rows(0))
    with pytest.raises(SchemaError, match="give format="):
        catalog.import_files("d.t", tmp_path / "hive")
    assert catalog.import_files("d.t", tmp_path / "hive", format="parquet").rows == 3
    assert ids(catalog.table("d.t")) == [0, 1, 2]
    assert catalog.import_files("d.one", tmp_path / "hive" / "000000_0", format="parquet").files == 1


def test_columns_that_files_lack_or_have_more(catalog, tmp_path):
    write_parquet(tmp_path / "l" / "a.parquet", pa.table({"id": [1]}))
    write_parquet(tmp_path / "l" / "b.parquet", pa.table({"id": [2], "more": ["x"]}))
    catalog.import_files("d.t", tmp_path / "l")
    table = catalog.table("d.t")
    assert table.to_arrow().sort_by("id").to_pylist() == [{"id": 1, "more": None}, {"id": 2, "more": "x"}]
    write_parquet(tmp_path / "l" / "c.parquet", pa.table({"id": [3], "most": ["x"]}))
    with pytest.raises(SchemaError, match="'most' is not in the table"):
        catalog.import_files("d.t", tmp_path / "l")
    table.alter(AddColumn("most", "STRING"))
    assert catalog.import_files("d.t", tmp_path / "l").files == 1
    table = catalog.table("d.t")
    table.alter(DropColumn("more"))
    assert catalog.table("d.t").scan(where="id = 3").to_arrow().to_pylist() == [{"id": 3, "most": "x"}]


def test_copies_convert_and_references_do_not(catalog, tmp_path):
    catalog.create_table("d.t", Schema({"id": "BIGINT NOT NULL", "s": "STRING"}), primary_key=["id"], options={"bucket": "1"})
    write_parquet(tmp_path / "l" / "a.parquet", pa.table({"id": pa.array([1, 2], pa.int32()), "s": ["a", "b"]}))
    with pytest.raises(UnsupportedError, match="a primary key cannot reference"):
        catalog.import_files("d.t", tmp_path / "l", dry_run=True)
    assert catalog.import_files("d.t", tmp_path / "l", copy=True).rows == 2
    catalog.create_table("d.u", Schema({"id": "BIGINT", "s": "STRING"}))
    with pytest.raises(SchemaError, match="INT in the file and BIGINT in the table"):
        catalog.import_files("d.u", tmp_path / "l")
    assert catalog.import_files("d.u", tmp_path / "l", copy=True).by_reference is False
    assert ids(catalog.table("d.t")) == ids(catalog.table("d.u")) == [1, 2]
    write_parquet(tmp_path / "l" / "b.parquet", pa.table({"id": [None, 3], "s": ["a", "b"]}))
    with pytest.raises(SchemaError, match=r"b\.parquet"):
        catalog.import_files("d.t", tmp_path / "l", copy=True)
    assert ids(catalog.table("d.t")) == [1, 2]
    for options in ({"bucket": "2", "bucket-key": "id"}, {"row-tracking.enabled": "true"}):
        catalog.create_table("d.v", Schema({"id": "BIGINT", "s": "STRING"}), options=options)
        with pytest.raises(UnsupportedError, match="copy=True"):
            catalog.import_files("d.v", tmp_path / "l")
        catalog.drop_table("d.v")


def test_partition_keys(catalog, tmp_path):
    for month, value in (("1", "a%2Fb"), ("2", "c d")):
        write_parquet(tmp_path / "l" / f"month={month}" / f"kind={value}" / "x.parquet", rows(int(month) * 10))
    result = catalog.import_files("d.t", tmp_path / "l", partition_by={"month": "INT", "kind": "STRING"})
    assert result.partition_keys == ("month", "kind")
    table = catalog.table("d.t")
    assert {(row["month"], row["kind"]) for row in table.to_arrow().to_pylist()} == {(1, "a/b"), (2, "c d")}
    assert ids(table.scan(where="kind = 'a/b'")) == [10, 11, 12]
    with pytest.raises(UsageError, match="partition_by names"):
        catalog.import_files("d.u", tmp_path / "l", partition_by=["kind", "month"])
    with pytest.raises(UsageError, match="partition_by says"):
        catalog.import_files("d.t", tmp_path / "l", partition_by=["kind"])
    write_parquet(tmp_path / "l" / "month=x" / "kind=y" / "x.parquet", rows(0))
    with pytest.raises(SchemaError, match=r"1 file does not fit\n.*'x' is not of type INT"):  # a copy does not help
        catalog.import_files("d.t", tmp_path / "l")
    write_parquet(tmp_path / "l" / "x.parquet", rows(0))
    with pytest.raises(UsageError, match="different partition keys"):
        catalog.import_files("d.t", tmp_path / "l")


def test_types_that_paimon_or_java_do_not_have(catalog, tmp_path):
    write_parquet(tmp_path / "n" / "a.parquet", pa.table({"t": pa.array([1], pa.timestamp("ns"))}))
    with pytest.raises(SchemaError, match="nanoseconds"):
        catalog.import_files("d.t", tmp_path / "n")
    assert catalog.import_files("d.t", tmp_path / "n", copy=True).rows == 1
    inner = pa.struct([("u", pa.uint64()), ("v", pa.list_(pa.uint8()))])
    time = datetime.time(23, 59, 59, 999_000)
    others = {
        "a": pa.array([255], pa.uint8()), "b": pa.array([65_535], pa.uint16()), "c": pa.array([2**32 - 1], pa.uint32()),
        "d": pa.array([2**64 - 1], pa.uint64()), "t": pa.array([time], pa.time64("us")),
        "n": pa.array([5_000_000], pa.time64("ns")), "s": pa.array([{"u": 2**63, "v": [200, None]}], inner), "x": pa.array(["é"]),
    }  # fmt: skip
    write_parquet(tmp_path / "u" / "a.parquet", pa.table(others))
    with pytest.raises(SchemaError, match=r"1 file does not fit; copy=True converts types\n.*, a type that Paimon does not have"):
        catalog.import_files("d.u", tmp_path / "u")
    catalog.import_files("d.u", tmp_path / "u", copy=True, verify=True)
    assert catalog.table("d.u").to_arrow().to_pylist() == [
        {"a": 255, "b": 65_535, "c": 2**32 - 1, "d": 2**64 - 1, "t": time, "n": datetime.time(0, 0, 0, 5000),
         "s": {"u": 2**63, "v": [200, None]}, "x": "é"}
    ]  # fmt: skip
    assert [str(field.type) for field in catalog.table("d.u").to_arrow().schema][:6] == [
        "int16", "int32", "int64", "decimal128(20, 0)", "time32[ms]", "time32[ms]",
    ]  # fmt: skip
    write_parquet(tmp_path / "m" / "a.parquet", pa.table({"t": pa.array([1], pa.time64("us"))}))
    with pytest.raises(SchemaError, match=r"m/a.parquet: column 't' is time64\[us\] in the file .* would lose data"):
        catalog.import_files("d.m", tmp_path / "m", copy=True)
    assert "m" not in catalog.tables("d")
    write_orc(tmp_path / "z" / "a.orc", pa.table({"t": pa.array([1], pa.timestamp("ns", "UTC"))}))
    with pytest.raises(SchemaError, match="instants"):
        catalog.import_files("d.z", tmp_path / "z")


@pytest.mark.parametrize("listing", [pa.list_, pa.large_list, lambda kind: pa.list_(kind, 1)])
@pytest.mark.parametrize(("kind", "value"), [(pa.uint64(), 2**64 - 1), (pa.float16(), 1.5), (pa.time64("us"), datetime.time(1))])
def test_types_that_paimon_does_not_have_in_lists(catalog, tmp_path, kind, value, listing):
    write_parquet(tmp_path / "l" / "a.parquet", pa.table({"v": pa.array([[value], None], listing(kind))}))
    catalog.import_files("d.t", tmp_path / "l", copy=True)
    assert catalog.table("d.t").to_arrow()["v"].to_pylist() == [[value], None]


@pytest.mark.parametrize("times", [[1], FAR])
def test_int96_beside_types_that_paimon_does_not_have(catalog, tmp_path, times):
    """They lost their nanoseconds when another column of the file was converted, and far ones failed the copy."""
    given = pa.array(times, pa.timestamp("us" if times is FAR else "ns"))
    rows = {"id": [*range(len(times))], "u": pa.array([7] * len(times), pa.uint8()), "t": given, "x": ["a"] * len(times)}
    write_parquet(tmp_path / "l" / "a.parquet", pa.table(rows), use_deprecated_int96_timestamps=True)
    catalog.import_files("d.t", tmp_path / "l", copy=True)
    assert catalog.table("d.t").to_arrow().sort_by("id").to_pylist() == pa.table(rows).to_pylist()
    inner = pa.StructArray.from_arrays([given, rows["u"]], ["t", "u"])
    write_parquet(tmp_path / "n" / "a.parquet", pa.table({"n": inner}), use_deprecated_int96_timestamps=True)
    with pytest.raises(SchemaError, match="'n' contains INT96 times beside a type that Paimon does not have"):
        catalog.import_files("d.n", tmp_path / "n", copy=True)


def test_columns_read_in_batches_of_other_lengths(monkeypatch, catalog, tmp_path):
    rows = pa.table({"u": pa.array(range(100), pa.uint8()), "x": [str(n) for n in range(100)]})
    write_parquet(tmp_path / "l" / "a.parquet", rows, row_group_size=7)
    monkeypatch.setattr(source_files, "_BATCH_ROWS", 3)
    catalog.import_files("d.t", tmp_path / "l", copy=True)
    assert catalog.table("d.t").to_arrow().sort_by("u").to_pylist() == rows.to_pylist()


@pytest.mark.parametrize("copy", [False, True])
@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [("CHAR(2)", "ab", "abc"), ("VARCHAR(2)", "äö", "abc"), ("TIME(3)", "10%3A11%3A12", "noon"), ("STRING", "%C3%A4", "%FF")],
)
def test_a_directory_gives_a_value_that_the_key_can_have(catalog, tmp_path, kind, good, bad, copy):
    """By reference, strings of any length were taken; and `%FF`, `%FE` became one value."""
    write_parquet(tmp_path / "l" / f"k={good}" / "a.parquet", pa.table({"id": [1]}))
    catalog.import_files("d.t", tmp_path / "l", partition_by={"k": kind}, copy=copy)
    assert str(catalog.table("d.t").to_arrow()["k"][0].as_py()) == unquote(good)
    write_parquet(tmp_path / "l" / f"k={bad}" / "b.parquet", pa.table({"id": [2]}))
    assert len(catalog.import_files("d.t", tmp_path / "l", copy=copy, dry_run=True).misfits) == 1
    with pytest.raises(SchemaError, match=f"k={bad}/b.parquet: .*{unquote(bad) if kind != 'STRING' else 'not UTF-8'}"):
        catalog.import_files("d.t", tmp_path / "l", copy=copy)


@pytest.mark.parametrize("copy", [False, True])
@pytest.mark.parametrize("write", [write_parquet, write_orc])
def test_a_partition_key_in_the_file_has_the_value_of_the_directory(catalog, tmp_path, write, copy):
    name = write.__name__.removeprefix("write_")
    for day, inside in (("2024-01-01", "2024-01-01"), ("2024-01-02", "1999-09-09")):
        write(tmp_path / "l" / f"day={day}" / f"a.{name}", pa.table({"day": [inside], "id": [1]}))
    catalog.import_files("d.t", tmp_path / "l", partition_by={"day": "DATE"}, copy=copy)
    catalog.import_files("d.t", tmp_path / "l", copy=copy)
    table = catalog.table("d.t")
    assert sorted(table.to_arrow()["day"].to_pylist()) == [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)]
    assert table.scan(where="day = DATE '1999-09-09'").count() == 0
    assert table.scan(where="day = '2024-01-02'", columns=["id"]).to_arrow().to_pylist() == [{"id": 1}]
    table.compact(full=True)
    assert table.scan(where="day = '2024-01-02'").to_arrow().to_pylist() == [{"id": 1, "day": datetime.date(2024, 1, 2)}]


def test_names_that_differ_only_in_case_are_no_two_columns(catalog, tmp_path):
    write_parquet(tmp_path / "l" / "a.parquet", pa.table({"id": [1]}))
    write_parquet(tmp_path / "l" / "b.parquet", pa.table({"Id": [2]}))
    with pytest.raises(SchemaError, match=r"'id' in .*a.parquet and 'Id' in .*b.parquet differ only in case: write the"):
        catalog.import_files("d.t", tmp_path / "l")
    write_parquet(tmp_path / "k" / "Day=1" / "a.parquet", pa.table({"id": [1], "day": [2]}))
    with pytest.raises(SchemaError, match=r"'day' and 'Day' in .*a.parquet differ only in case"):
        catalog.import_files("d.t", tmp_path / "k")
    write_parquet(tmp_path / "m" / "a.parquet", pa.table({"id": [1], "ID": [2]}))
    catalog.import_files("d.m", tmp_path / "m")
    assert catalog.table("d.m").to_arrow().to_pylist() == [{"id": 1, "ID": 2}]


def test_wrong_calls(catalog, lake, tmp_path):
    for wrong in (
        {"source": 7}, {"format": "csv"}, {"copy": 1}, {"dry_run": "no"}, {"partition_by": "dt"}, {"primary_key": ["id"]}, {"primary_key": "id", "copy": True},
        {"source": str(lake / "*.parquet")}, {"progress": 1}, {"table_options": "x"}, {"source": ""},
    ):  # fmt: skip
        with pytest.raises(UsageError):
            catalog.import_files("d.t", **{"source": lake, **wrong})
    inside = partitioned(tmp_path / "warehouse" / "d.db" / "raw")
    with pytest.raises(UsageError, match="copy=True"):
        catalog.import_files("d.t", inside)
    assert catalog.import_files("d.t", inside, copy=True).rows == 18
    comma = partitioned(tmp_path / "a,b")
    with pytest.raises(UsageError, match="comma"):
        catalog.import_files("d.u", comma)
    catalog.create_table("d.out", Schema({"id": "BIGINT"}), options={"data-file.external-paths": f"file://{tmp_path}/lake/new"})
    with pytest.raises(UsageError, match="must not overlap"):
        catalog.import_files("d.out", lake)
    assert catalog.tables("d") == ["out", "t"]


def test_imports_into_one_table_at_once(catalog, lake, monkeypatch):
    catalog.import_files("d.t", lake)
    write_parquet(lake / "dt=2024-01-01" / "late.parquet", rows(100))
    begin, other = Ledger.begin, Catalog.open(catalog.warehouse)

    def late(self, *args):
        monkeypatch.undo()
        other.import_files("d.t", lake)
        return begin(self, *args)

    monkeypatch.setattr(Ledger, "begin", late)
    with pytest.raises(Exception, match="another import"):
        catalog.import_files("d.t", lake)
    assert ids(Table.open(catalog.table("d.t").location)) == [*ALL, 100, 101, 102]


@pytest.mark.parametrize("copy", [False, True])
def test_an_import_that_another_one_believed_dead_imports_nothing_twice(catalog, lake, monkeypatch, copy):
    catalog.import_files("d.t", lake, copy=copy)
    write_parquet(lake / "dt=2024-01-01" / "late.parquet", rows(100))
    commit, other = verb.commit, Catalog.open(catalog.warehouse)

    def late(*args):
        monkeypatch.undo()
        assert other.import_files("d.t", lake, copy=copy).files == 1  # forgets the first one, which has not committed
        return commit(*args)

    monkeypatch.setattr(verb, "commit", late)
    with pytest.raises(PaimonError) if copy else contextlib.nullcontext():  # references are known by their names
        catalog.import_files("d.t", lake, copy=copy)
    assert catalog.import_files("d.t", lake, copy=copy).files == 0
    assert ids(Table.open(catalog.table("d.t").location)) == [*ALL, 100, 101, 102]


@pytest.mark.parametrize("copy", [False, True])
def test_an_import_that_believed_another_one_dead_imports_nothing_twice(catalog, lake, monkeypatch, copy):
    catalog.import_files("d.t", lake, copy=copy)
    write_parquet(lake / "dt=2024-01-01" / "late.parquet", rows(100))
    settle, other = Ledger.settle, Catalog.open(catalog.warehouse)
    commit = verb.commit

    def slow(*args):
        """The slow one has begun; another one settles before its commit, and commits after it."""
        monkeypatch.setattr(verb, "commit", commit)
        found = settle(Ledger(args[0]))
        monkeypatch.setattr(Ledger, "settle", lambda self: found)
        done.append(commit(*args))
        with pytest.raises(CommitConflictError) if copy else contextlib.nullcontext():
            other.import_files("d.t", lake, copy=copy)
        monkeypatch.setattr(Ledger, "settle", settle)
        return done[0]

    done = []
    monkeypatch.setattr(verb, "commit", slow)
    catalog.import_files("d.t", lake, copy=copy)
    assert done and catalog.import_files("d.t", lake, copy=copy).files == 0
    assert ids(Table.open(catalog.table("d.t").location)) == [*ALL, 100, 101, 102]


def test_progress_is_told(catalog, lake):
    told = []
    catalog.import_files("d.t", lake, progress=lambda *each: told.append(each))
    assert told[-1] == (6, 6, "files")


def test_columns_without_null(catalog, tmp_path):
    required = pa.schema([pa.field("id", pa.int64(), nullable=False, metadata={b"PARQUET:field_id": b"1"}), ("s", pa.string())])
    write_parquet(tmp_path / "l" / "a.parquet", pa.table({"id": [1], "s": ["a"]}, required), store_schema=False)
    with pytest.raises(SchemaError, match="NOT NULL in the file, but not in the table"):
        catalog.import_files("d.t", tmp_path / "l")
    catalog.create_table("d.t", Schema({"id": "BIGINT NOT NULL", "s": "STRING"}))
    assert catalog.import_files("d.t", tmp_path / "l").rows == 1
    assert ids(catalog.table("d.t")) == [1]
    write_parquet(tmp_path / "l" / "b.parquet", pa.table({"id": [2], "s": ["a"]}))
    with pytest.raises(SchemaError, match="NOT NULL in the table, but not in the file"):
        catalog.import_files("d.t", tmp_path / "l")
    assert catalog.import_files("d.t", tmp_path / "l", copy=True).rows == 1
    plain = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    write_parquet(tmp_path / "p" / "a.parquet", pa.table({"id": [1]}, plain))
    catalog.import_files("d.p", tmp_path / "p")
    assert ids(catalog.table("d.p")) == [1]


def test_views_of_arrow_in_parquet(catalog, tmp_path):
    table = pa.table({"s": pa.array(["a", None, "b" * 40], pa.string_view()), "x": pa.array([b"1", b"", None], pa.binary_view())})
    schema = pa.schema([("s", pa.string_view()), ("x", pa.binary_view()), ("l", pa.list_(pa.string_view()))])
    lists = pa.array([["a"], [], None], pa.list_(pa.string())).cast(pa.list_(pa.string_view()))
    write_parquet(tmp_path / "l" / "a.parquet", pa.table([*table.columns, lists], schema=schema))
    catalog.import_files("d.t", tmp_path / "l")
    assert catalog.table("d.t").to_arrow().to_pylist() == [
        {"s": "a", "x": b"1", "l": ["a"]}, {"s": None, "x": b"", "l": []}, {"s": "b" * 40, "x": None, "l": None},
    ]  # fmt: skip
    assert catalog.table("d.t").scan(where="s = 'a'").count() == 1


def _lying(path, cut):
    """A file of Parquet without a part of its pages, so that its footer names more bytes than there are."""
    write_parquet(path, pa.table({"id": list(range(9)), "s": ["é" * 99] * 9}), compression="none", use_dictionary=False)
    data = path.read_bytes()
    path.write_bytes(data[:40] + data[40 + cut :])
    return path


def test_files_shorter_than_their_footers_say_are_refused(catalog, tmp_path):
    _lying(tmp_path / "short" / "a.parquet", 900)
    whole = tmp_path / "short" / "whole.orc"
    write_orc(whole, rows(0, 300))
    data = whole.read_bytes()
    whole.write_bytes(data[:3] + data[200:])
    with pytest.raises(SchemaError, match=r"2 files do not fit\n.*a.parquet: damaged: column 's' of row group 0 has bytes") as e:
        catalog.import_files("d.t", tmp_path / "short")
    assert "whole.orc: damaged: its footer says" in str(e.value)
    assert catalog.tables("d") == []


def _hidden(tmp_path, name):
    """A file whose footer is whole, and whose column `c` cannot be read."""
    texts = pa.Array.from_buffers(pa.string(), 3, [None, pa.array([0, 1, 3, 4], pa.int32()).buffers()[1], pa.py_buffer(b"ab\xffz")])
    column = texts if name == "text" else pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), texts)
    path = tmp_path / name / "bad.parquet"
    write_parquet(path, pa.table({"k": [1, 2, 3], "c": column}))
    write_parquet(tmp_path / name / "good.parquet", pa.table({"k": [4], "c": ["x"]}))
    return path.parent


@pytest.mark.parametrize("name", ["text", "dictionary"])
def test_values_that_cannot_be_read_are_found_with_verify(catalog, tmp_path, name):
    lake = _hidden(tmp_path, name)
    assert [each.reason[:20] for each in catalog.import_files("d.t", lake, verify=True, dry_run=True).misfits] == ["damaged: column 'c':"]
    with pytest.raises(SchemaError, match=r"1 file does not fit\n.*bad.parquet: damaged: column 'c': Invalid UTF8"):
        catalog.import_files("d.t", lake, verify=True)
    assert catalog.tables("d") == []
    assert catalog.import_files("d.whole", lake / "good.parquet", verify=True).rows == 1
    with pytest.raises((SchemaError, CorruptionError), match=r"bad.parquet.* column '?c'? ?.*UTF"):
        catalog.import_files("d.copied", lake, copy=True)
    assert catalog.tables("d") == ["whole"]


def test_columns_with_one_name_are_refused(catalog, tmp_path):
    twice = pa.table([pa.array([1]), pa.array([2])], names=["k", "k"])
    inside = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], fields=[pa.field("x", pa.int64()), pa.field("x", pa.int64())])
    write_parquet(tmp_path / "lake" / "a.parquet", twice)
    write_parquet(tmp_path / "lake" / "b.parquet", pa.table({"r": inside}))
    for copy in (False, True):
        reasons = [each.reason for each in catalog.import_files("d.t", tmp_path / "lake", copy=copy, dry_run=True).misfits]
        assert [reason.rpartition(" name ")[2] for reason in reasons] == ["['k'] more than once; keep one", "['x'] more than once; keep one"]


def test_a_table_that_references_a_single_file_is_read(catalog, lake, tmp_path):
    """The file itself was named as a directory, no read found it below, and every read of the table failed."""
    one, other = lake / "dt=2024-01-01" / "late.parquet", tmp_path / "lake" / "alone.orc"
    write_parquet(one, rows(30))
    write_orc(other, rows(40).select(["id"]))
    catalog.import_files("d.t", one)
    catalog.import_files("d.t", other)
    assert ids(catalog.table("d.t")) == [30, 31, 32, 40, 41, 42]
    assert catalog.table("d.t").options[REFERENCED] == f"file:{one.parent},file:{other.parent}"
    catalog.drop_table("d.t")
    assert one.exists() and other.exists()


def test_files_without_rows_and_columns_without_a_type_are_copied(catalog, tmp_path):
    write_parquet(tmp_path / "in" / "a.parquet", pa.table({"id": [1], "s": pa.nulls(1)}))
    write_parquet(tmp_path / "in" / "b.parquet", pa.table({"id": [2], "s": ["x"]}))
    write_parquet(tmp_path / "in" / "c.parquet", pa.table({"id": pa.array([], pa.int64()), "s": pa.array([], pa.string())}))
    assert [each.reason for each in catalog.import_files("d.t", tmp_path / "in", dry_run=True).misfits] == ["column 's' contains only NULL and has no type; copy=True fills the column with NULL"]
    catalog.import_files("d.t", tmp_path / "in", copy=True)
    assert sorted(catalog.table("d.t").to_arrow().to_pylist(), key=lambda row: row["id"]) == [{"id": 1, "s": None}, {"id": 2, "s": "x"}]
    with pytest.raises(SchemaError, match="'s' contains only NULL and has no type; give it the type"):
        catalog.import_files("d.new", tmp_path / "in" / "a.parquet", copy=True)
    strict = catalog.create_table("d.strict", Schema([("id", "BIGINT NOT NULL"), ("s", "STRING NOT NULL")]))
    assert catalog.import_files("d.strict", tmp_path / "in" / "c.parquet", copy=True).rows == 0
    assert strict.refresh().to_arrow().num_rows == 0


def test_int96_beyond_nanoseconds_is_refused_by_reference_and_copied(catalog, tmp_path):
    """The table had a column of TIMESTAMP(9), and each read of it failed."""
    times = pa.table({"t": pa.array(FAR, pa.timestamp("us"))})
    write_parquet(tmp_path / "in" / "a.parquet", times, use_deprecated_int96_timestamps=True)
    with pytest.raises(SchemaError, match=r"'t' contains INT96 times outside .* copy=True keeps them as TIMESTAMP\(6\)"):
        catalog.import_files("d.t", tmp_path / "in")
    assert catalog.tables("d") == []
    catalog.import_files("d.t", tmp_path / "in", copy=True)
    assert catalog.table("d.t").to_arrow()["t"].to_pylist() == FAR
    near = pa.table({"t": pa.array([7], pa.timestamp("ns"))})
    write_parquet(tmp_path / "near" / "a.parquet", near, use_deprecated_int96_timestamps=True)
    catalog.import_files("d.near", tmp_path / "near")
    assert catalog.table("d.near").to_arrow()["t"].cast(pa.int64()).to_pylist() == [7]
    write_parquet(tmp_path / "in" / "nested.parquet", pa.table({"t": [FAR]}), use_deprecated_int96_timestamps=True)
    with pytest.raises(SchemaError, match=r"nested.parquet: column 't' .* nested or finer than microseconds"):
        catalog.import_files("d.both", tmp_path / "in", copy=True)


def test_an_import_whose_rows_do_not_fit_leaves_no_table(catalog, tmp_path):
    """Only the table that the import itself has made is dropped."""
    write_parquet(tmp_path / "in" / "a.parquet", pa.table({"k": [1, None]}))
    for make in (lambda: None, lambda: catalog.create_table("d.t", Schema({"k": "BIGINT NOT NULL"}))):
        made = make()
        with pytest.raises(SchemaError, match=r"NULL"):
            catalog.import_files("d.t", tmp_path / "in", copy=True, primary_key=["k"] if made is None else ())
        assert catalog.tables("d") == ([] if made is None else ["t"])


def test_text_that_is_not_utf_8_is_named_before_other_libraries_get_it(catalog, tmp_path):
    """It panicked in polars, and was a raw error of pandas; Arrow passes the bytes on."""
    catalog.import_files("d.t", _hidden(tmp_path, "text"))
    table = catalog.table("d.t")
    assert table.to_arrow().num_rows == 4
    for read in (table.to_pandas, table.to_polars, table.scan().to_polars(lazy=True).collect):
        with pytest.raises(CorruptionError, match="column 'c' contains bytes that are not UTF-8"):
            read()
    assert table.scan(where="k <> 2").to_polars().height == 3


@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_strings_that_are_not_utf8_are_what_the_page_says(catalog, tmp_path, form):
    raw = pa.array([b"ok", b"caf\xe9", None, b"z"], pa.binary())
    texts = pa.Array.from_buffers(pa.string(), 4, raw.buffers(), 1)
    write = {"parquet": write_parquet, "orc": write_orc}[form]
    write(tmp_path / "lake" / f"bad.{form}", pa.table({"k": [1, 2, 3, 4], "c": texts}))
    write(tmp_path / "lake" / f"good.{form}", pa.table({"k": [5], "c": ["b"]}))
    catalog.create_table("d.t", {"k": "BIGINT", "c": "STRING"}, options={"file.format": form})
    catalog.import_files("d.t", tmp_path / "lake")
    table = catalog.table("d.t")
    if form == "orc":
        with pytest.raises(CorruptionError, match=r"bad\.orc is damaged: column 'c' contains strings that are not UTF-8"):
            table.to_arrow()
        return
    assert table.to_arrow().sort_by("k")["c"].cast(pa.binary()).to_pylist() == [*raw.to_pylist(), b"b"]
    assert sorted(table.scan(where="c >= 'c'").to_arrow()["k"].to_pylist()) == [1, 2, 4]
    for like, keys in {"%": [1, 2, 4, 5], "c%": [2], "%f%": [2], "caf_": [], "%_": [1, 4, 5]}.items():
        assert sorted(table.scan(where=col("c").like(like)).to_arrow()["k"].to_pylist()) == keys, like
    assert table.scan(where=~col("c").like("caf%")).count() == 3
    for act in (table.scan().to_pandas, lambda: table.update("k = 1", {"c": "x"})):
        with pytest.raises((SchemaError, CorruptionError), match=r"column '?c'? contains bytes that are not UTF-8"):
            act()
    with pytest.raises(UsageError, match=r"lower\(caf\\xe9\) \(row \d of a batch\): Invalid UTF8"):
        table.scan(where="lower(c) = 'z'").to_arrow()
    with pytest.raises(SchemaError, match=r"upper\(caf\\xe9\)"):
        table.update("true", {"c": sql("upper(c)")})
    table.compact(full=True)
    assert table.to_arrow().sort_by("k")["c"].cast(pa.binary()).to_pylist() == [*raw.to_pylist(), b"b"]
