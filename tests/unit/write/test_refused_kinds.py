"""Rows that a merge engine can never merge are refused when they are written, whoever writes them."""

from __future__ import annotations

import json

import pytest

from paimon_py import Catalog, Schema, SetOption, UsageError
from paimon_py.cdc import Event, Sink

COLUMNS = Schema([("k", "BIGINT NOT NULL"), ("v", "STRING"), ("g", "BIGINT")])
REFUSING = [{"merge-engine": "first-row"}, {"merge-engine": "partial-update"}]
TAKING = [
    {"merge-engine": "first-row", "ignore-delete": "true"},
    {"merge-engine": "partial-update", "ignore-delete": "true"},
    {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    {"merge-engine": "partial-update", "fields.g.sequence-group": "v"},
    {"merge-engine": "deduplicate"},
]


@pytest.fixture
def catalog():
    made = Catalog.open("memory://kinds")
    made.drop_database("d", missing_ok=True, cascade=True)
    made.create_database("d")
    return made


def made(catalog, options):
    table = catalog.create_table("d.t", COLUMNS, primary_key=["k"], options={"bucket": "1", **options})
    table.write_arrow([{"k": 1, "v": "a", "g": 1}])
    return table


def row(kind):
    return {"k": 1, "v": "b", "g": 2, "_row_kind": kind}


@pytest.mark.parametrize("options", REFUSING, ids=str)
@pytest.mark.parametrize("kind", ["-U", "-D"])
def test_row_kinds_that_readers_cannot_merge_are_refused(catalog, options, kind):
    table = made(catalog, options)
    with pytest.raises(UsageError, match=rf"row of kind {kind} cannot be written: .*'ignore-delete'"):
        table.write_arrow([{"k": 2, "v": "c", "g": 1, "_row_kind": "+I"}, row(kind)])
    with table.writer() as writer, pytest.raises(UsageError, match=f"row of kind {kind}"):
        writer.write_arrow([row(kind)])
    assert table.to_arrow().to_pylist() == [{"k": 1, "v": "a", "g": 1}]
    table.alter(SetOption("ignore-delete", "true"))
    table.write_arrow([row(kind)])
    assert table.to_arrow().to_pylist() == [{"k": 1, "v": "a", "g": 1}]


@pytest.mark.parametrize("options", TAKING, ids=str)
@pytest.mark.parametrize("kind", ["-U", "-D"])
def test_options_decide_which_row_kinds_are_written_and_read(catalog, options, kind):
    table = made(catalog, options)
    table.write_arrow([row(kind)])
    table.compact(full=True)
    assert table.count() in (0, 1)


@pytest.mark.parametrize("options", REFUSING, ids=str)
def test_a_sink_writes_them_as_dead_letters(catalog, options):
    texts = Schema([("k", "STRING NOT NULL"), ("v", "STRING")])  # what events without a schema declare
    table = catalog.create_table("d.t", texts, primary_key=["k"], options={"bucket": "1", **options})
    table.write_arrow([{"k": "1", "v": "a"}])
    source = {"table": "t", "db": "shop", "connector": "mysql"}
    rows = [{"k": key, "v": "x"} for key in "15"]
    given = [
        {"before": rows[0], "after": None, "op": "d", "source": source},
        {"before": None, "after": rows[1], "op": "c", "source": source},
    ]
    keys = [json.dumps({"k": row["k"]}).encode() for row in rows]
    events = [Event(value=json.dumps(one).encode(), key=key) for one, key in zip(given, keys)]
    done = Sink(catalog, "d", user="u").write(events, identifier=1)
    assert (done.rows, done.dead) == ({"t": 1}, 1)
    (reason,) = [letter["reason"] for letter in catalog.table("d.cdc_dead_letters").to_arrow().to_pylist()]
    assert "does not take rows of kind -U or -D" in reason
    assert sorted(row["k"] for row in catalog.table("d.t").to_arrow().to_pylist()) == ["1", "5"]


@pytest.mark.parametrize("engine", ["first-row", "partial-update"])
def test_a_sink_takes_updates_whose_row_before_is_dropped(catalog, engine):
    texts = Schema([("k", "STRING NOT NULL"), ("v", "STRING")])
    options = {"bucket": "1", "merge-engine": engine, "ignore-update-before": "true"}
    table = catalog.create_table("d.t", texts, primary_key=["k"], options=options)
    source = {"table": "t", "db": "shop", "connector": "mysql"}
    update = {"before": {"k": "1", "v": "a"}, "after": {"k": "1", "v": "b"}, "op": "u", "source": source}
    event = Event(value=json.dumps(update).encode(), key=json.dumps({"k": "1"}).encode())
    done = Sink(catalog, "d", user="u").write([event], identifier=1)
    assert (dict(done.rows), done.dead) == ({"t": 2}, 0)
    assert table.to_arrow().to_pylist() == [{"k": "1", "v": "b"}]
