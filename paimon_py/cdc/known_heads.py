"""Recognizes messages by what is before their payload: then only the payload is decoded, and the schema is known.

A converter sends the schema with each message, `{"schema":…,"payload":…}`, often several times as long as the payload.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from paimon_py.cdc.event import SourceColumn
from paimon_py.cdc.opening import ANY, UNREADABLE

_BEFORE_SCHEMA = re.compile(rb'\s*\{\s*"schema"\s*:\s*')
_BEFORE_PAYLOAD = re.compile(rb'\s*,\s*"payload"\s*:')
_TOPICS_MAX = 4096
_HEADS_MAX = 4
"""Heads of one topic: while its schema changes, or where several tables share it."""


class KnownMessage(msgspec.Struct, frozen=True, gc=False):
    """The payload of a message, and the columns that its schema declares."""

    payload: Any
    columns: tuple[SourceColumn, ...]


class KnownHeads:
    """The texts before the payloads of earlier messages, by topic, with the columns that their schemas declare."""

    def __init__(self) -> None:
        self._heads: dict[str, tuple[tuple[bytes, tuple[SourceColumn, ...]], ...]] = {}

    def find(self, topic: str, text: bytes) -> KnownMessage | None:
        """The message, if it begins like an earlier one and is `{schema, payload}`; None otherwise."""
        for head, columns in self._heads.get(topic, ()):
            if text.startswith(head):
                if not text.endswith(b"}"):
                    return None
                try:
                    return KnownMessage(ANY.decode(text[len(head) : -1]), columns)
                except UNREADABLE:
                    return None  # it is damaged, or has more members after the payload
        return None

    def add(self, topic: str, text: bytes, schema: bytes, columns: tuple[SourceColumn, ...]) -> None:
        """Remember the head of a message with valid JSON, if its schema comes first and its payload second."""
        before = _BEFORE_SCHEMA.match(text)
        if before is None or not schema.startswith(b"{") or not text.startswith(schema, before.end()):
            return
        after = _BEFORE_PAYLOAD.match(text, before.end() + len(schema))
        if after is None:
            return
        if len(self._heads) >= _TOPICS_MAX:
            self._heads = {}
        newest = (text[: after.end()], columns)
        others = [each for each in self._heads.get(topic, ()) if each[0] != newest[0]]
        self._heads[topic] = (newest, *others[: _HEADS_MAX - 1])
