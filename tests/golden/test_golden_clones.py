"""Clones of Java's tables read as the tables do, at every snapshot and tag."""

from __future__ import annotations

import golden
import pytest
from locate import CORPUS

from paimon_py import Catalog, OptionError, PaimonError, UnsupportedError

CASES = golden.cases(str(CORPUS))
SOME = {
    "pk-dv", "append-partitioned", "bucket-dynamic", "branch-empty", "tags-basic", "partition-expire", "agg-collect-retract",
}  # fmt: skip
FEW = [case for at, case in enumerate(CASES) if case.name in SOME or at % 97 == 5]


def answer(scan):
    """The rows of a scan, or the name of what cannot be read; BLOBs as bytes, not as paths of the table's own files."""
    try:
        rows = scan().to_arrow(blobs="bytes")
    except PaimonError as error:
        return type(error)
    return rows.schema, sorted(map(repr, rows.to_pylist()))


def compare(case, warehouse):
    catalog = Catalog.open(warehouse)
    source = catalog.table(case.table)
    name = case.table.partition(".")[0] + ".the_clone"
    try:
        catalog.clone_table(case.table, name, history=True, tags=True)
    except (UnsupportedError, OptionError) as error:
        return str(error)
    clone = catalog.table(name)
    assert [one.id for one in clone.snapshots()] == [one.id for one in source.snapshots()]
    assert [tag.name for tag in clone.tags()] == [tag.name for tag in source.tags()]
    for tag in source.tags():
        assert answer(lambda tag=tag: clone.scan(tag=tag.name)) == answer(lambda tag=tag: source.scan(tag=tag.name))
    for one in source.snapshots():
        wanted = answer(lambda one=one: source.scan(snapshot_id=one.id))
        assert answer(lambda one=one: clone.scan(snapshot_id=one.id)) == wanted, one.id
    first = (source.snapshots() or [None])[0]
    if first is not None:
        changes = [answer(lambda table=table: table.changes(first.id)) for table in (clone, source)]
        assert changes[0] == changes[1]
    return None


@pytest.mark.parametrize("case", FEW, ids=lambda case: case.name)
def test_a_clone_reads_as_its_source(case, tmp_path):
    assert compare(case, golden.unpack(case, tmp_path)) is None


@pytest.mark.full
def test_all_clones_read_as_their_sources(tmp_path):
    refused = {}
    for at, case in enumerate(CASES):
        said = compare(case, golden.unpack(case, tmp_path / str(at)))
        if said is not None:
            refused[case.name] = said
    assert all("cannot read" in said or "no branch" in said for said in refused.values()), refused
