"""`Table.load_files`, and datasets: no column of a file is left out in silence."""

from __future__ import annotations

import csv
import datetime
import gzip
import json
import os
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from unit.public import new_catalog, reopened

from paimon_py import Schema, SchemaError, StorageError, UsageError

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("day", pa.date32()), ("price", pa.float64())])


@pytest.fixture
def catalog(tmp_path):
    return new_catalog(tmp_path / "w")


@pytest.fixture(params=["keyed", "append"])
def table(request, catalog):
    keys = ["id"] if request.param == "keyed" else []
    return catalog.create_table("d.t", SCHEMA, primary_key=keys, options={"bucket": "1" if keys else "-1"})


@pytest.fixture
def inbox(tmp_path):
    place = tmp_path / "inbox"
    (place / "deep").mkdir(parents=True)
    for number, path in enumerate(("a.csv", "b.csv", "deep/c.csv")):
        (place / path).write_text(f"id,day,price\n{number},2024-11-0{number + 1},{number}.5\n")
    (place / "_SUCCESS").write_text("")
    (place / ".d.csv").write_text("nothing of ours")
    return place


def ids(table):
    return sorted(reopened(table).to_arrow()["id"].to_pylist())


def files(table):
    return {path for path in Path(table.location).rglob("*") if path.is_file()}


@pytest.mark.parametrize(("asked", "wanted"), [
    ("a.csv", [0]), ("*.csv", [0, 1]), ("**/*.csv", [0, 1, 2]), ("*/c.csv", [2]), ("[ab].csv", [0, 1]), ("?.csv", [0, 1]),
    ("", [0, 1, 2]), ("deep", [2]),
])  # fmt: skip
def test_paths_directories_and_patterns(table, inbox, asked, wanted):
    done = table.load_files(inbox / asked if asked != "*.csv" else f"{inbox}/{asked}")
    assert ids(table) == wanted and done.snapshot_id == 1 and done.row_count == len(wanted)


def test_several_files_are_one_commit_and_each_is_read_once(table, inbox):
    assert table.load_files([inbox / "b.csv", f"{inbox}/*.csv", str(inbox / "b.csv")]).snapshot_id == 1
    assert ids(table) == [0, 1]
    (inbox / "e[1].csv").write_text("id,day,price\n9,,\n")
    table.load_files(inbox / "e[1].csv")
    assert ids(table) == [0, 1, 9]


def test_every_format_is_read_in_the_types_of_the_table(table, tmp_path):
    rows = [{"id": 1, "day": "2024-11-01", "price": 1}, {"id": 2, "day": None, "price": 2.5}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "b.tsv").write_text("price\tid\tday\n3\t3\t2024-11-03\n")
    (tmp_path / "c.txt").write_text("id;price;day\n4;-;2024-11-04\n")
    pq.write_table(pa.table({"day": pa.array([0], pa.date32()), "id": [5]}), tmp_path / "d.parquet")
    table.load_files([tmp_path / "a.jsonl", tmp_path / "b.tsv", tmp_path / "d.parquet"])
    table.load_files(tmp_path / "c.txt", format="csv", delimiter=";", nulls="-")
    found = reopened(table).to_arrow().sort_by("id").to_pydict()
    assert found["id"] == [1, 2, 3, 4, 5] and found["price"] == [1.0, 2.5, 3.0, None, None]
    assert [day and str(day) for day in found["day"]] == ["2024-11-01", None, "2024-11-03", "2024-11-04", "1970-01-01"]


@pytest.mark.parametrize(("text", "told"), [
    ("id,day,Price\n7,2024-11-01,1\n", r"late\.csv: .*Price: .*is it 'price'"),
    ("id;day;price\n7;2024-11-01;1\n", r"late\.csv: .*id;day;price: (.|\n)*give delimiter=';'"),
    ("id|day|price\n7|2024-11-01|1\n", r"give delimiter='\|'"),
    ("id,day,price,note\n7,2024-11-01,1,x\n", r"late\.csv: .*note"),
    ("id,day,price\n,2024-11-01,1\n", r"late\.csv: (.|\n)*id.*row 0"),
])  # fmt: skip
def test_a_file_that_does_not_fit_is_refused_by_name_and_nothing_is_written(table, inbox, text, told):
    (inbox / "late.csv").write_text(text)
    before = files(table)
    with pytest.raises(SchemaError, match=f"(?s){told}") as raised:
        table.load_files(f"{inbox}/*.csv")
    assert raised.value.fields and files(table) == before


@pytest.mark.parametrize(("call", "error", "told"), [
    (lambda table, inbox: table.load_files(inbox / "none.csv"), StorageError, "does not exist"),
    (lambda table, inbox: table.load_files(f"{inbox}/*.parquet"), UsageError, "no file matches"),
    (lambda table, inbox: table.load_files([]), UsageError, "at least one file"),
    (lambda table, inbox: table.load_files(None), UsageError, "takes a path"),
    (lambda table, inbox: table.load_files(b"a.csv"), UsageError, "takes a path"),
    (lambda table, inbox: table.load_files([7]), UsageError, "paths as strings"),
    (lambda table, inbox: table.load_files(inbox, format="xml"), UsageError, "format is one of"),
    (lambda table, inbox: table.load_files(inbox, delimiter=";;"), UsageError, "one character"),
    (lambda table, inbox: table.load_files(inbox, nulls=3), UsageError, "nulls"),
    (lambda table, inbox: table.load_files(inbox, identifier=3), UsageError, "user"),
    (lambda table, inbox: table.load_files(inbox, overwrite={"x": 1}), UsageError, "x"),
    (lambda table, inbox: table.load_files([inbox / "a.csv", Path(os.devnull)]), UsageError, "does not say what"),
])  # fmt: skip
def test_wrong_calls_are_refused_by_name(table, inbox, call, error, told):
    before = files(table)
    with pytest.raises(error, match=told):
        call(table, inbox)
    assert files(table) == before


def test_a_number_that_was_committed_reads_no_file(table, inbox):
    assert table.load_files(inbox / "a.csv", user="daily", identifier=1).row_count == 1
    again = table.load_files(inbox / "gone.csv", user="daily", identifier=1)
    assert again.already_committed and ids(table) == [0]
    assert not table.load_files(inbox / "b.csv", user="daily", identifier=2).already_committed
    assert ids(table) == [0, 1] and table.committed("daily") == 2


def test_an_overwrite_replaces_and_files_without_rows_do_not_empty_the_table(table, inbox):
    table.load_files(inbox)
    table.load_files(inbox / "a.csv", overwrite={})
    assert ids(table) == [0]
    (inbox / "empty.csv").write_text("id,day,price\n")
    with pytest.raises(UsageError, match="contain no rows"):
        table.load_files(inbox / "empty.csv", overwrite={})
    assert ids(table) == [0] and table.load_files(inbox / "empty.csv").row_count == 0


def test_progress_counts_bytes_of_files_and_then_rows(table, inbox):
    told = []
    table.load_files(f"{inbox}/*.csv", progress=lambda *call: told.append(call))
    size = sum(path.stat().st_size for path in inbox.glob("[ab].csv"))
    assert [call[2] for call in told[:2]] == ["a.csv", "b.csv"] and told[1][:2] == (size, size)
    assert told[-1] == (2, 2, "rows into files")


# -- datasets -----------------------------------------------------------------------------------------------------------


def test_a_dataset_whose_files_have_the_columns_is_written(table, inbox):
    table.write_arrow(ds.dataset(inbox, format="csv", schema=SCHEMA, exclude_invalid_files=False))
    assert ids(table) == [0, 1, 2]


@pytest.mark.parametrize("text", ["id,day,Price\n7,2024-11-01,1\n", "id;day;price\n7;2024-11-01;1\n"])
@pytest.mark.parametrize("verb", ["write_arrow", "upsert"])
def test_a_dataset_that_would_leave_a_column_out_is_refused_by_file_and_column(table, inbox, text, verb):
    (inbox / "late.csv").write_text(text)
    before = files(table)
    write = {"write_arrow": table.write_arrow, "upsert": lambda data: table.upsert(data, on=["id"])}[verb]
    column = "id;day;price" if ";" in text else "Price"
    with pytest.raises(SchemaError, match=rf"late\.csv has '{column}', which the schema of the dataset lacks") as raised:
        write(ds.dataset(inbox, format="csv", schema=SCHEMA))
    assert raised.value.fields == (column,) and files(table) == before


def test_columns_that_are_named_may_leave_others_out(table, tmp_path):
    pq.write_table(pa.table({"id": [1], "price": [1.5], "note": ["x"]}), tmp_path / "a.parquet")
    with pytest.raises(SchemaError, match="'note'"):
        table.write_arrow(ds.dataset(tmp_path / "a.parquet", schema=SCHEMA))
    table.write_arrow(ds.dataset(tmp_path / "a.parquet").scanner(columns=["id", "price"]).to_reader())
    table.write_arrow(ds.dataset(pa.table({"id": [2]})))
    assert ids(table) == [1, 2]


@pytest.mark.parametrize("name", ["in.csv", "in.csv.gz"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "bom"])
def test_rows_that_are_not_utf8_are_bad_rows_like_others(catalog, tmp_path, name, mark):
    table = catalog.create_table("d.u", pa.schema([("a", pa.int32()), ("bö", pa.string()), ("raw", pa.binary())]))
    lines = [b"a,b\xc3\xb6,raw", b"1,\xc3\xb6k,\xff", b"2,\xe4,u", b"3,y,\xe4z,q", b"z\xe4,b,c", b'5,"a\xe9\nb",u', b"x,ok,", b"7,n\xc3\xa4,", b"8,\xc3\xb6,v"]
    data = mark + b"\n".join(lines)
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    bad = []
    table.load_files(tmp_path / name, on_bad_row=bad.append, nulls=["nä"])
    assert table.to_arrow().to_pylist() == [
        {"a": 1, "bö": "ök", "raw": b"\xff"}, {"a": 7, "bö": None, "raw": None}, {"a": 8, "bö": "ö", "raw": b"v"},
    ]  # fmt: skip
    assert [(row.line, row.column, row.record) for row in bad] == [
        (3, "bö", r"2,\xe4,u"), (4, None, r"3,y,\xe4z,q"), (5, "a", r"z\xe4,b,c"), (6, "bö", '5,"a\\xe9\nb",u'), (8, "a", "x,ok,"),
    ]  # fmt: skip
    assert bad[0].problem == r"'\xe4' is not UTF-8"
    with pytest.raises(UsageError, match=r"line 3, column 'bö': '\\xe4' is not UTF-8; on_bad_row= .*; iconv "):
        table.load_files(tmp_path / name)


@pytest.mark.parametrize("how", [{}, {"on_bad_row": print}], ids=["all", "good"])
def test_names_of_columns_that_are_not_utf8_are_refused_with_the_way_out(table, tmp_path, how):
    (tmp_path / "in.csv").write_bytes(b"id,b\xe4\n1,2\n")
    with pytest.raises(UsageError, match=r"in\.csv cannot be read: .*; iconv -f WINDOWS-1252"):
        table.load_files(tmp_path / "in.csv", **how)


NESTED = {
    "m": ("MAP<STRING, BIGINT>", '{"a": 1, "b": null}', [("a", 1), ("b", None)]),
    "n": (
        "MAP<INT, ROW<a DATE, b MAP<STRING, DECIMAL(20, 10)>>>", '{"7": {"a": "2024-01-02", "b": {"z": 1234567890.1234567891}}}',
        [(7, {"a": datetime.date(2024, 1, 2), "b": [("z", Decimal("1234567890.1234567891"))]})],
    ),
    "r": ("ROW<x INT, y ARRAY<MAP<STRING, STRING>>>", '{"x": 1, "y": [{"p": "q,\\n"}, {}, null]}', {"x": 1, "y": [[("p", "q,\n")], [], None]}),
    "s": ("MULTISET<STRING>", '{"w": 2}', [("w", 2)]),
    "l": ("ARRAY<INT>", "[1, null]", [1, None]),
    "e": ("MAP<STRING, BIGINT>", '[{"key": "a", "value": 1}]', [("a", 1)]),
    "o": ("MAP<STRING, BIGINT>", "{}", []),
    "t": ("MAP<TIME(0), TIME(3)>", '{"10:00:00": "23:59:59.25"}', [(datetime.time(10), datetime.time(23, 59, 59, 250_000))]),
    "v": ("VARIANT", '{"a": [1, "x"]}', None),
    "w": ("VARIANT", '"x"', None),
}  # fmt: skip
"""Columns of nested types: the type, a value as JSON, and as Python value."""


@pytest.fixture
def nested(catalog):
    return catalog.create_table("d.n", Schema([("k", "INT"), *((name, each[0]) for name, each in NESTED.items())]))


def nested_rows(table):
    rows = sorted(reopened(table).to_arrow().drop(["v", "w"]).to_pylist(), key=lambda row: row["k"])
    found = reopened(table).scan(columns=["k", "v", "w"], where="v IS NOT NULL").to_pandas()
    return rows, [str(value) for name in ("v", "w") for value in found[name]]


@pytest.mark.parametrize("keep", [False, True])
def test_nested_values_of_csv_files_are_json(nested, tmp_path, keep):
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["k", *NESTED], [1, *(each[1] for each in NESTED.values())], [2, *[""] * len(NESTED)]])
    nested.load_files(tmp_path / "a.csv", on_bad_row=print if keep else None)
    plain = {name: each[2] for name, each in NESTED.items() if name not in "vw"}
    rows, variants = nested_rows(nested)
    assert rows == [{"k": 1, **plain}, {"k": 2, **dict.fromkeys(plain)}] and len(variants) == 2


def test_maps_and_variants_of_json_files_are_objects(nested, tmp_path):
    first = ", ".join(f'"{name}": {each[1]}' for name, each in NESTED.items())
    later = "".join(f'{{"k": {number}, "m": {{"{number}{"x" * 300}": {number}}}}}\n' for number in range(3, 5_000))
    (tmp_path / "a.json").write_text(f'{{"k": 1, {first}}}\n{{"k": 2, "m": null}}\n\n{later}')
    nested.load_files(tmp_path / "a.json")
    plain = {name: each[2] for name, each in NESTED.items() if name not in "vw"}
    rows, variants = nested_rows(nested)
    assert rows[:2] == [{"k": 1, **plain}, {"k": 2, **dict.fromkeys(plain)}] and len(variants) == 2
    assert [row["m"] for row in rows[2:]] == [[(f"{number}{'x' * 300}", number)] for number in range(3, 5_000)]


def test_times_of_json_files_are_texts(catalog, tmp_path):
    table = catalog.create_table("d.n", Schema([("k", "INT"), ("t", "TIME(3)")]))
    (tmp_path / "a.json").write_text('{"k": 1, "t": "23:59:59.25"}\n{"k": 2, "t": null}\n')
    table.load_files(tmp_path / "a.json")
    assert reopened(table).to_arrow()["t"].to_pylist() == [datetime.time(23, 59, 59, 250_000), None]
    (tmp_path / "b.json").write_text('{"k": 3, "t": "25:00:00"}\n')
    with pytest.raises(UsageError, match="25:00:00"):
        table.load_files(tmp_path / "b.json")


@pytest.mark.parametrize(("name", "value", "told"), [
    ("m", '{"a": "x"}', "string"), ("m", "3", "number"), ("n", '{"x": null}', "JSON parse error"), ("m", '{"a": 1', "JSON"),
    ("l", '["x"]', "string"),
])  # fmt: skip
def test_nested_values_that_do_not_fit_are_refused_with_their_line(nested, tmp_path, name, value, told):
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["k", name], [1, ""], [2, value]])
    with pytest.raises(UsageError, match=f"line 3, column '{name}'"):
        nested.load_files(tmp_path / "a.csv")
    bad = []
    assert nested.load_files(tmp_path / "a.csv", on_bad_row=bad.append).row_count == 1 and bad[0].value == value
    (tmp_path / "a.json").write_text(f'{{"k": 1}}\n{{"k": 2, "{name}": {value}}}\n')
    with pytest.raises(UsageError, match=told):
        nested.load_files(tmp_path / "a.json")


DAY, TIME = datetime.date(2024, 2, 29), datetime.time(10, 11, 12, 500_000)
TIMES = {
    "a": ("ARRAY<DATE>", ["2024-02-29", None], [DAY, None]),
    "r": ("ROW<d DATE, t TIME(3), l ARRAY<ROW<t TIME(3)>>>", {"d": "2024-02-29", "t": "10:11:12.5", "l": [{"t": "10:11:12.5"}]},
          {"d": DAY, "t": TIME, "l": [{"t": TIME}]}),
    "t": ("TIME(3)", "10:11:12.5", TIME), "d": ("DATE", "2024-02-29", DAY), "n": ("ARRAY<DATE>", [19_782], [DAY]),
}  # fmt: skip


@pytest.mark.parametrize("with_map", [False, True])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("form", ["json", "csv"])
def test_dates_and_times_stand_as_texts_in_nested_values(catalog, tmp_path, form, first, with_map):
    """Only tables with a MAP read dates as texts in JSON; times in nested values were read nowhere."""
    wanted = {"m": ("MAP<TIME(3), TIME(3)>", {"10:11:12.5": "10:11:12.5"}, [(TIME, TIME)])} if with_map else {}
    wanted |= {name: each for name, each in TIMES.items() if form == "json" or name != "n"}
    if not first:
        wanted.pop("n", None)  # later numbers are not known to be numbers
    table = catalog.create_table("d.t", Schema([("k", "INT"), *((name, each[0]) for name, each in wanted.items())]))
    rows = [{"k": 1, **{name: each[1] for name, each in wanted.items()}}, {"k": 2, **dict.fromkeys(wanted)}]
    rows = rows if first else rows[::-1]
    if form == "json":
        (tmp_path / "a.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        with (tmp_path / "a.csv").open("w", newline="") as file:
            texts = ([value if isinstance(value, (int, str)) else value and json.dumps(value) for value in row.values()] for row in rows)
            csv.writer(file).writerows([["k", *wanted], *texts])
    table.load_files(tmp_path / f"a.{form}")
    assert sorted(reopened(table).to_arrow().to_pylist(), key=lambda row: row["k"]) == [
        {"k": 1, **{name: each[2] for name, each in wanted.items()}}, {"k": 2, **dict.fromkeys(wanted)},
    ]  # fmt: skip


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
@pytest.mark.parametrize(("kind", "good", "bad"), [
    ("VARIANT", '{"a": 1}', "not JSON"), ("VARIANT", "1", '{"a": 1, "a": 2}'), ("VARCHAR(2)", "ab", "abc"), ("CHAR(2)", "ab", "abc"),
    ("BINARY(2)", "ab", "abc"), ("ARRAY<INT NOT NULL>", "[1]", "[null]"), ("ROW<a VARCHAR(1)>", '{"a": "x"}', '{"a": "xy"}'),
    ("MAP<STRING, INT>", '{"a": 1}', '{"a": 1, "a": 2}'), ("MAP<DOUBLE, INT>", '{"1": 1}', '{"1": 1, "1.0": 2}'),
    ("MAP<STRING, INT>", "{}", '[{"key": "a", "value": 1}, {"key": "a", "value": 2}]'), ("ROW<t TIME(3)>", '{"t": "10:11"}', '{"t": "25:00:00"}'),
])  # fmt: skip
def test_rows_that_the_writer_refuses_are_bad_rows_like_others(catalog, tmp_path, kind, good, bad, encoding):
    table = catalog.create_table("d.t", Schema([("k", "INT"), ("s", "STRING"), ("v", kind)]))
    with (tmp_path / "a.csv").open("w", newline="", encoding=encoding) as file:
        csv.writer(file).writerows([["k", "s", "v"], [1, "a", good], [2, "b", bad], [3, "c", ""], [4, "ä", good]])
    found = []
    kept = 3 if encoding == "utf-8" else 2
    assert table.load_files(tmp_path / "a.csv", on_bad_row=found.append).row_count == kept
    assert (found[0].line, found[0].column, found[0].value) == (3, "v", bad)
    with pytest.raises((UsageError, SchemaError)):
        table.load_files(tmp_path / "a.csv")


@pytest.mark.parametrize("blank", ["", " "])
def test_keys_that_a_map_of_a_json_file_has_twice_are_refused(catalog, tmp_path, blank):
    """The last one was taken."""
    table = catalog.create_table("d.t", Schema([("k", "INT"), ("m", "MAP<STRING, INT>")]))
    (tmp_path / "a.json").write_text('{"k":1,"m":{"b":1,"a":2}}\n{"k":2,"m":{"b":1,"b":2}}\n'.replace(":", f":{blank}"))
    with pytest.raises(UsageError, match="the key 'b' appears twice in an object"):
        table.load_files(tmp_path / "a.json")
    (tmp_path / "a.json").write_text('{"k": 1, "k": 2, "m": {"b": 1}}\n')
    with pytest.raises(UsageError, match="the key 'k' appears twice in an object"):
        table.load_files(tmp_path / "a.json")
