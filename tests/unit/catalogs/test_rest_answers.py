"""Answers of a REST server with every field wrong in turn, and bodies that are none: only errors of ours, and nothing is lost."""

from __future__ import annotations

import json

import msgspec
import pyarrow as pa
import pytest
from unit.catalogs.rest_stub import StubServer, catalog_of
from unit.catalogs.test_rest_views_and_functions import with_function, with_view

from paimon_py import AddColumn, CommitUnknownError, PaimonError, Schema
from paimon_py.metastores.rest.http import Answer

COLUMNS = Schema([("k", "BIGINT NOT NULL"), ("v", "STRING")])
BODIES = (b"", b"null", b"[]", b"{}", b"7", b'"x"', b"{", b"\xff\xfe", b"[" * 100_000, b'{"a":' * 50_000, b"1e999")
WRONG = (None, [], {}, "x", -1, 1.5, True, 2**70)


def rows(*keys):
    return pa.table({"k": list(keys), "v": [f"v{key}" for key in keys]})


def wrong(value):
    """A JSON value with one part of it replaced, for each part, by others."""
    yield from (other for other in WRONG if other != value)
    if isinstance(value, dict):
        for key, item in value.items():
            yield {name: part for name, part in value.items() if name != key}
            yield from ({**value, key: other} for other in wrong(item))
    elif isinstance(value, list):
        for place, item in enumerate(value[:2]):
            yield from ([*value[:place], other, *value[place + 1 :]] for other in wrong(item))


VERBS = {
    "databases": lambda c: c.databases(),
    "database": lambda c: c.create_database("d", exist_ok=True),
    "tables": lambda c: c.tables("d"),
    "table": lambda c: c.table("d.t"),
    "scan": lambda c: c.table("d.t").scan().count(),
    "alter": lambda c: c.table("d.t").alter(AddColumn("x", "INT")),
    "branches": lambda c: c.table("d.t").delete_branch("b"),
    "by id": lambda c: c.table_by_id(c._metastore.answer(c._split("d.t", "x")).id),
    "partitions": lambda c: c.partitions("d.t"),
    "view": lambda c: c.view("d.v"),
    "function": lambda c: c.function("d.f"),
    "views": lambda c: (c.views("d"), c.functions("d")),
    "open": lambda c: c._metastore.options,
}


def prepared():
    server = StubServer()
    catalog = catalog_of(server)
    catalog.create_database("d")
    table = catalog.create_table("d.t", COLUMNS, partition_by=["v"], options={"metastore.partitioned-table": "true"})
    table.write_arrow(rows(1))
    table.create_branch("b")
    with_view(catalog)
    with_function(catalog)
    return server, catalog


def answers_of(act):
    """How many calls a verb makes, and what each is answered."""
    server, catalog = prepared()
    plain, told = server.sent, []
    server.sent = lambda *given: told.append(plain(*given)) or told[-1]
    act(catalog_of(server) if act is VERBS["open"] else catalog)
    return told


@pytest.mark.parametrize("name", sorted(VERBS))
def test_an_invalid_answer_is_a_paimon_error(name):
    act, server = VERBS[name], None
    for number, answer in enumerate(answers_of(act)):
        changing = name in ("alter", "branches")
        values = wrong(json.loads(answer.body)) if answer.body and not changing else ()
        for body in (*BODIES, *(json.dumps(value).encode() for value in values)):
            if server is None or changing:
                server, catalog = prepared()
                plain = server.sent
            calls = iter(range(1000))
            server.sent = lambda *given: msgspec.structs.replace(plain(*given), body=body) if next(calls) == number else plain(*given)
            try:
                act(catalog_of(server) if name == "open" else catalog)
            except PaimonError as error:
                assert len(str(error)) < 2000, (name, number, body[:80])


@pytest.mark.parametrize("body", BODIES)
def test_a_commit_with_an_invalid_answer_succeeded_or_is_unknown(body):
    server, catalog = prepared()
    table, plain = catalog.table("d.t"), server.sent

    def sent(method, url, *others):
        done = plain(method, url, *others)
        return Answer(200, {}, body) if url.endswith("/commit") else done

    server.sent = sent
    assert table.write_arrow(rows(2)).snapshot_id == 2
    server.sent = lambda *given: Answer(200, {}, body) if given[0] == "GET" else sent(*given)
    with pytest.raises((CommitUnknownError, PaimonError)):
        table.write_arrow(rows(3))
    server.sent = plain
    assert catalog.table("d.t").scan().count() in (2, 3)
