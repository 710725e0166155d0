"""Tables written by Java Paimon 0.9, 1.4 and 2.0 read equal, or are refused by the name of what is missing."""

from __future__ import annotations

import golden
import pytest
from filters import predicate
from locate import CORPUS

import paimon_py
from paimon_py import Catalog, UnsupportedError

CASES = golden.cases(str(CORPUS))


def scan_of(case: golden.Case, read: dict, warehouse: str) -> paimon_py.Scan:
    table = Catalog.open(warehouse).table(read.get("table", case.table))
    where = None
    if "filter" in read:
        types = {name: golden.parse_type(kind) for name, kind in read["schema"]}
        types |= {name: golden.parse_type(kind) for name, kind in read.get("filter_types", {}).items()}
        where = predicate(read["filter"], types)
    selector = {
        {"timestamp_millis": "timestamp"}.get(key, key): value for key, value in read["scan"].items()
    }
    return table.scan(columns=read.get("columns"), where=where, **selector)


@pytest.mark.parametrize("case", [c for c in CASES if c.stage == 1], ids=lambda c: c.name)
def test_table_of_this_scope_reads_as_in_java(case, tmp_path):
    warehouse = golden.unpack(case, tmp_path)
    for number, read in enumerate(case.reads):
        scan = scan_of(case, read, warehouse)
        table = scan.to_arrow()
        difference = golden.compare(case, read, table)
        assert difference is None, f"read {number} {read['scan']} {read.get('filter')}: {difference}"
        assert scan.count() == table.num_rows


@pytest.mark.parametrize("case", [c for c in CASES if c.stage > 1], ids=lambda c: c.name)
def test_table_of_later_scope_is_never_read_wrong(case, tmp_path):
    warehouse = golden.unpack(case, tmp_path)
    for number, read in enumerate(case.reads):
        if read.get("useBranch") or read.get("rowTracking") or "kinds" in read:
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
