"""The numbers of a sink's steps: the same events are taken once, other events under the same number are refused."""

from __future__ import annotations

import json

import pytest

from paimon_py import Catalog
from paimon_py.cdc import Event, Sink
from paimon_py.errors import CommitConflictError, CorruptionError, UsageError


@pytest.fixture
def catalog():
    made = Catalog.open("memory://steps")
    made.drop_database("lake", missing_ok=True, cascade=True)
    return made


def event(key, table="t"):
    row = {"id": key, "v": f"v{key}"}
    source = {"table": table, "db": "shop", "connector": "mysql"}
    value = {"before": None, "after": row, "op": "c", "source": source}
    return Event(value=json.dumps(value).encode(), key=json.dumps({"id": key}).encode(), topic=table)


def sink(catalog, user="u"):
    return Sink(catalog, "lake", user=user)


def ids(catalog, table="t"):
    return sorted(int(row["id"]) for row in catalog.table(f"lake.{table}").to_arrow().to_pylist())


def test_the_same_events_are_taken_once_in_any_order(catalog):
    events = [event(1), event(2), event(3)]
    assert sink(catalog).write(events, identifier=0).rows == {"t": 3}
    assert sink(catalog).write(events[::-1], identifier=0).rows == {"t": 0}
    assert ids(catalog) == [1, 2, 3]


@pytest.mark.parametrize("again", [[1, 2, 3, 4], [1], [1, 1, 2, 3], [4]], ids=str)
def test_a_lost_checkpoint_brings_other_events_under_the_same_number(catalog, again):
    sink(catalog).write([event(key) for key in (1, 2, 3)], identifier=0)
    with pytest.raises(CommitConflictError, match=r"identifier 0 holds other events now.*newest checkpoint back.*user="):
        sink(catalog).write([event(key) for key in again], identifier=0)
    assert ids(catalog) == [1, 2, 3]
    assert sink(catalog, "after").write([event(4)], identifier=0).rows == {"t": 1}


def test_a_number_below_the_last_is_refused_before_any_table_is_written(catalog):
    sink(catalog).write([event(1)], identifier=0)
    sink(catalog).write([event(2), event(7, "other")], identifier=7)
    with pytest.raises(UsageError, match="newest checkpoint back"):
        sink(catalog).write([event(9, "third"), event(3), Event(value=b"{")], identifier=3)
    assert ids(catalog) == [1, 2]
    assert catalog.tables("lake") == ["other", "t"]


@pytest.mark.parametrize(("number", "kind"), [(3, UsageError), (7, CommitConflictError)])
@pytest.mark.parametrize("again", [[event(9, "third")], [Event(value=b"{")], [event("wide", "t")]], ids=["new", "dead", "altered"])
def test_a_lost_step_touches_nothing_whatever_tables_it_names(catalog, number, kind, again):
    target = sink(catalog)
    target.write([event(1), event(2, "other")], identifier=7)
    before = catalog.tables("lake"), [catalog.table(f"lake.{name}").schema for name in ("other", "t")]
    for one in (target, sink(catalog)):
        with pytest.raises(kind, match="newest checkpoint back"):
            one.write(again, identifier=number)
    assert before == (catalog.tables("lake"), [catalog.table(f"lake.{name}").schema for name in ("other", "t")])
    assert target.write(again, identifier=8).rows.keys() <= {"t", "third"}


def test_a_lost_step_that_holds_other_columns_alters_nothing(catalog):
    sink(catalog).write([event(1)], identifier=7)
    wide = json.loads(event(2).value)
    wide["after"]["more"] = "x"
    with pytest.raises(CommitConflictError, match="other events"):
        sink(catalog).write([Event(json.dumps(wide).encode(), event(2).key)], identifier=7)
    assert catalog.table("lake.t").schema.names == ("id", "v")


def test_later_steps_ask_only_their_own_tables(catalog, monkeypatch):
    asked = []
    listed = Catalog.tables
    monkeypatch.setattr(Catalog, "tables", lambda self, database: asked.append(database) or listed(self, database))
    target = sink(catalog)
    for number in range(3):
        target.write([event(number)], identifier=number)
    assert asked == ["lake"]


def test_a_table_of_strangers_that_cannot_be_read_stops_no_step(tmp_path):
    catalog = Catalog.open(str(tmp_path))
    sink(catalog).write([event(1), event(2, "other")], identifier=0)
    (schema,) = (tmp_path / "lake.db" / "other" / "schema").iterdir()
    schema.write_text("{")
    assert sink(catalog).write([event(3)], identifier=1).rows == {"t": 1}
    with pytest.raises(CorruptionError):
        sink(catalog).write([event(4), event(4, "other")], identifier=2)
    assert ids(catalog) == [1, 3]


def test_what_was_committed_stays_known_when_snapshots_expire(catalog):
    sink(catalog).write([event(1)], identifier=0)
    table = catalog.table("lake.t")
    table.write_arrow([{"id": "5", "v": "x"}])
    table.expire_snapshots(retain_min=1, retain_max=1)
    assert sink(catalog).write([event(1)], identifier=0).rows == {"t": 0}
    with pytest.raises(CommitConflictError, match="other events"):
        sink(catalog).write([event(2)], identifier=0)


@pytest.mark.parametrize("name", ["../../x", "a b/c", "a$b", "t$files", ".", "x\0y"])
def test_a_source_table_of_an_impossible_name_is_a_dead_letter(catalog, name):
    target = sink(catalog)
    target.write([event(1)], identifier=0)
    done = target.write([event(2, name), event(3)], identifier=1)
    assert (done.dead, done.rows.get("t"), ids(catalog)) == (1, 1, [1, 3])
