"""Messages that begin like earlier ones are decoded as if they were the first."""

from __future__ import annotations

import itertools
import json

import pytest

from paimon_py.cdc import Event, debezium
from paimon_py.cdc.debezium import decode
from paimon_py.cdc.known_heads import KnownHeads

ROW = {"id": 1, "note": "x"}
FIELDS = [{"field": "id", "type": "int64"}, {"field": "note", "type": "string"}]


@pytest.fixture(autouse=True)
def _no_known_heads(monkeypatch):
    forget(monkeypatch)


def forget(monkeypatch):
    monkeypatch.setattr(debezium, "_OF_ROWS", KnownHeads())
    monkeypatch.setattr(debezium, "_OF_KEYS", KnownHeads())


def value(row=None, fields=None, **json_options):
    schema = {"fields": [{"field": "after", "fields": FIELDS if fields is None else fields}]}
    payload = {"op": "c", "after": ROW if row is None else row, "source": {"table": "t"}}
    return json.dumps({"schema": schema, "payload": payload}, **json_options)


def told(text):
    return Event(text.encode(), b'{"schema":{"fields":[{"field":"id","type":"int64"}]},"payload":{"id":1}}', "topic")


FIRST = value()
SECOND = [
    value({"id": 2, "note": "y"}), FIRST + " ", FIRST + "}", FIRST[:-1], FIRST[:-2], FIRST[:-1] + ', "more": 1}', FIRST[:-1] + " }",
    FIRST[:-1] + ', "payload": null}', FIRST[:-1] + ', "schema": null}', FIRST[:-1] + ', "schema": {"fields": []}}',
    FIRST[: FIRST.index('"payload"') + 10] + "null}", FIRST[: FIRST.index('"payload"') + 10] + "5}", value({"id": 1}),
    value(fields=FIELDS[:1]), value({"id": 1, "note": "x", "c": 1}, [*FIELDS, {"field": "c", "type": "int32"}]),
    FIRST.replace('"c"', '"x"'), "null", "", "{", value(separators=(",", ":")), value(indent=1),
    value({"id": 1, "note": '{"schema": {}, "payload": {}}'}),
]  # fmt: skip


@pytest.mark.parametrize("second", SECOND)
@pytest.mark.parametrize("first", [FIRST, value(separators=(",", ":")), value(indent=1)], ids=["plain", "dense", "wide"])
def test_a_message_means_the_same_after_another(first, second, monkeypatch):
    alone = decode(told(second))
    forget(monkeypatch)
    decode(told(first))
    assert decode(told(second)) == alone
    assert decode(Event(told(second).value, told(second).key, "other topic")) == alone


@pytest.mark.parametrize("options", [{}, {"separators": (",", ":")}, {"indent": 1}], ids=str)
def test_the_schema_of_a_known_head_is_not_read_again(options, monkeypatch):
    decode(told(value(**options)))

    def refuse(schema, part):
        raise AssertionError(schema, part)

    monkeypatch.setattr(debezium, "_fields", refuse)
    again = decode(told(value({"id": 7, "note": None}, **options)))
    assert again.rows == (("+I", {"id": 7, "note": None}),) and again.keys == ("id",)


def test_only_some_heads_of_a_topic_and_some_topics_are_kept():
    heads = KnownHeads()
    texts = [b'{"schema":{"a":%d},"payload":1}' % number for number in range(9)]
    for number, topic in itertools.product(range(9), ("a", "b")):
        heads.add(topic, texts[number], b'{"a":%d}' % number, ())
    for topic in "ab":
        assert [heads.find(topic, text) is None for text in texts] == [True] * 5 + [False] * 4
    for number in range(5000):
        heads.add(str(number), texts[0], b'{"a":0}', ())
    assert heads.find("0", texts[0]) is None and heads.find("4999", texts[0]).payload == 1


@pytest.mark.parametrize("text", [
    b'{"payload":1,"schema":{"a":1}}', b'{"x":1,"schema":{"a":1},"payload":1}', b'{"schema":{"a":1},"x":2,"payload":1}',
    b'{"schema":{"a":2},"payload":1,"schema":{"a":1}}', b'{"x":"{\\"schema\\":{\\"a\\":1}","schema":{"a":1},"payload":1}',
])  # fmt: skip
def test_other_messages_are_not_remembered(text):
    heads = KnownHeads()
    heads.add("t", text, b'{"a":1}', ())
    assert heads.find("t", text) is None
