"""Tables written by Java Paimon 0.9, 1.4 and 2.0 read equal, or are refused by the name of what is missing."""

from __future__ import annotations

import math

import golden
import pyarrow as pa
import pytest
from filters import predicate
from locate import CORPUS
from passing import passing

import paimon_py
from paimon_py import Catalog, UnsupportedError
from paimon_py.system.kinds import MADE


def is_made(read: dict) -> bool:
    """Whether a system table is read whose rows tell of a table."""
    name = read.get("table", "")
    return name.startswith("sys.") or name.partition("$")[2] in MADE


CASES = golden.cases(str(CORPUS))
NEWEST = 6  # the stage of row tracking, data evolution, VARIANT, VECTOR and BLOB
INDEXED = [case for case in CASES if case.stage < NEWEST and "file-index" in case.tags]
BRANCHES = ("branch-empty", "branch-empty--java-142", "branch-fallback", "branch-fast-forward")
TRACKED = [case for case in CASES if {"row-tracking", "data-evolution"} & case.tags and (case.stage == NEWEST or not {"blob", "vector", "variant"} & case.tags)]
VECTORS = [case for case in CASES if "vector" in case.tags and not {"data-evolution", "blob"} & {*case.tags}]
VARIANTS = [case for case in CASES if "variant" in case.tags]
CHAINS = [case for case in CASES if case.name.startswith("chain-")]
NEWER = (*INDEXED, *TRACKED, *VECTORS, *VARIANTS, *CHAINS)
IN_SCOPE = [case for case in CASES if case.stage <= 3 or case in NEWER or case.name in BRANCHES]
LATER = [case for case in CASES if case not in IN_SCOPE]

MADE_TABLES = [(case, read) for case in CASES for read in case.reads if is_made(read)]

BEYOND_ARROW = {"types-orc-old-timestamps": "t9"}
"""Columns of TIMESTAMP(9) with years that 64 bits of nanoseconds cannot hold: refused by name, the others read equal."""

AS_STORED = {"pk-key-double-zeros"}
"""Java's ORC reader turns the batch [-0.0, 0.0] into [-0.0, -0.0] (equal values count as repeating) and then sees the
stored 0.0 as another key. The file holds both zeros; we read what is stored, as Java does from Parquet and Avro."""


def scan_of(case: golden.Case, read: dict, warehouse: str) -> paimon_py.Scan:
    table = Catalog.open(warehouse).table(read.get("table", case.table))
    if "useBranch" in read:
        table = table.branch(read["useBranch"])
    where = None
    if "filter" in read:
        types = {name: golden.parse_type(kind) for name, kind in read["schema"]}
        types |= {name: golden.parse_type(kind) for name, kind in read.get("filter_types", {}).items()}
        where = predicate(read["filter"], types)
    selector = {
        {"timestamp_millis": "timestamp"}.get(key, key): value for key, value in read["scan"].items()
    }
    columns = [name for name, _ in read["schema"]] if read.get("rowTracking") else None
    return table.scan(columns=read.get("columns", columns), where=where, **selector)


def without(read: dict, column: str) -> dict:
    """The read, projected to all columns but one."""
    at = [name for name, _ in read["schema"]].index(column)
    schema = [part for index, part in enumerate(read["schema"]) if index != at]
    rows = [[value for index, value in enumerate(row) if index != at] for row in read["rows"]]
    return {**read, "schema": schema, "rows": rows, "columns": [name for name, _ in schema]}


def first_zero_is_gone(table: pa.Table) -> bool:
    """Key 0.0 was written twice: the later row alone is left, beside the row of key -0.0."""
    rows = {math.copysign(1, k): v for k, v in zip(table["k"].to_pylist(), table["v"].to_pylist()) if k == 0}
    return rows.get(1.0, 100) in (0, 100) and rows.get(-1.0, 1) == 1 and len(rows) <= 2


@pytest.mark.budget(20)
@pytest.mark.parametrize("case", IN_SCOPE, ids=lambda c: c.name)
def test_table_of_this_scope_reads_as_in_java(case, tmp_path):
    warehouse = golden.unpack(case, tmp_path)
    for number, read in enumerate(case.reads):
        if is_made(read):
            continue
        if case.name in BEYOND_ARROW:
            with pytest.raises(UnsupportedError, match="64-bit"):
                scan_of(case, read, warehouse).to_arrow()
            read = without(read, BEYOND_ARROW[case.name])
        scan = scan_of(case, read, warehouse)
        if "error" in read:
            with pytest.raises(paimon_py.PaimonError):
                scan.to_arrow()
            continue
        table = scan.to_arrow()
        if case.name in AS_STORED:
            assert first_zero_is_gone(table)
            continue
        kinds = "_row_kind" if "_row_kind" in table.column_names else None
        difference = golden.compare(case, read, table, kind_column=kinds)
        assert difference is None, f"read {number} {read['scan']} {read.get('filter')}: {difference}"
        assert scan.count() == table.num_rows


@pytest.mark.parametrize("case", [case for case in IN_SCOPE if case.stage == 3], ids=lambda c: c.name)
def test_changes_are_those_of_java(case, tmp_path):
    catalog = Catalog.open(golden.unpack(case, tmp_path))
    for read in case.reads:
        options = read["scan"].get("options", {})
        mode = options.get("incremental-between-scan-mode", "auto")
        name = read.get("table", case.table)
        if "incremental-between" not in options or mode == "diff" or (mode == "changelog" and not read["rows"]):
            continue
        first, last = map(int, options["incremental-between"].split(","))
        scan = passing(catalog.table(name)).changes(first, last, mode=mode, columns=read.get("columns"))
        table = scan.to_arrow()
        kinds = "_row_kind" if "_row_kind" in table.column_names else None
        assert golden.compare(case, read, table, kind_column=kinds) is None, read["scan"]


@pytest.mark.parametrize("case, read", MADE_TABLES, ids=lambda part: getattr(part, "name", None) or part["table"])
def test_system_table_tells_what_it_tells_in_java(case, read, tmp_path):
    warehouse = golden.unpack(case, tmp_path)
    scan = scan_of(case, read, warehouse)
    assert golden.compare(case, read, scan.to_arrow(), warehouse=warehouse) is None
    assert scan.count() == len(read["rows"])


@pytest.mark.parametrize("case", INDEXED, ids=lambda c: c.name)
def test_file_indexes_of_java_spare_rows(case, tmp_path):
    warehouse = golden.unpack(case, tmp_path)
    plans = [scan_of(case, read, warehouse).explain() for read in case.reads if "filter" in read]
    assert any(plan.index_rows or not plan.splits for plan in plans)


@pytest.mark.parametrize("case", LATER, ids=lambda c: c.name)
def test_table_of_later_scope_is_never_read_wrong(case, tmp_path):
    warehouse = golden.unpack(case, tmp_path)
    for number, read in enumerate(case.reads):
        if read.get("useBranch") or read.get("rowTracking") or "kinds" in read or is_made(read):
            continue
        try:
            table = scan_of(case, read, warehouse).to_arrow()
        except UnsupportedError as error:
            assert error.feature
            continue
        except paimon_py.PaimonError:
            assert "error" in read
            continue
        assert "error" not in read
        difference = golden.compare(case, read, table)
        assert difference is None, f"read {number} {read['scan']} {read.get('filter')}: {difference}"


@pytest.mark.parametrize("case", [case for case in CASES if case.name in BEYOND_ARROW], ids=lambda c: c.name)
def test_bounds_beyond_arrow_are_told_as_unknown(case, tmp_path):
    table = Catalog.open(golden.unpack(case, tmp_path)).table(case.table)
    told = table.system("files").scan(columns=["min_value_stats"]).to_arrow()["min_value_stats"].to_pylist()
    assert told and all(f"{BEYOND_ARROW[case.name]}=null" in text for text in told)
