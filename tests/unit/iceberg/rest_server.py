"""A REST catalog of Iceberg in memory, in place of the one over HTTP; checks what Iceberg's own server checks."""

from __future__ import annotations

import copy
import json
from urllib.parse import unquote, urlsplit

from paimon_py.metastores.rest.http import Answer, Unanswered, Unsent


class Refused(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class FakeRestServer:
    """Takes requests as a sender; `.tables` holds metadata by name, `.requests` what was asked.

    `.faults`: by number of a request, "unsent", "lost" (done, but the answer is lost) or a status.
    `.before`: called with each request, to let others be faster.
    """

    def __init__(self, store=None):
        self.store, self.tables, self.namespaces = store, {}, set()
        self.requests, self.faults, self.before = [], {}, None
        self.token = None

    def send(self, method, url, headers, body):
        path = urlsplit(url).path
        self.requests.append(f"{method} {path}")
        if self.before is not None:
            self.before(method, path)
        fault = self.faults.get(len(self.requests) - 1)
        if fault == "unsent":
            return Unsent("nobody there")
        if isinstance(fault, int):
            return self._answer(fault, {"error": {"message": "told to", "code": fault}})
        if self.token is not None and not path.endswith("/tokens") and headers.get("Authorization") != f"Bearer {self.token}":
            return self._answer(401, {"error": {"message": f"not {headers.get('Authorization')}"}})
        try:
            found = self._answer(200, self._do(method, path, body))
        except Refused as error:
            found = self._answer(error.status, {"error": {"message": str(error), "code": error.status}})
        return Unanswered("the line went dead") if fault == "lost" else found

    def _answer(self, status, value):
        return Answer(status, {}, json.dumps(value).encode())

    def _do(self, method, path, body):
        if path.endswith("/tokens"):
            return {"access_token": self.token}
        parts = [unquote(part) for part in path.split("/")[2:]]
        data = json.loads(body) if body and body[:1] == b"{" else {}
        if parts == ["config"]:
            return {"defaults": {}, "overrides": {}}
        if parts == ["namespaces"]:
            self.namespaces.add(data["namespace"][0])
            return {}
        if parts[0] != "namespaces" or parts[1] not in self.namespaces:
            raise Refused(404, "no such namespace")
        if parts[2] == "register":
            return self._register((parts[1], data["name"]), data["metadata-location"])
        name = (parts[1], parts[3])
        if name not in self.tables:
            raise Refused(404, "no such table")
        if method == "DELETE":
            del self.tables[name]
            return {}
        if method == "POST":
            self.tables[name] = commit(self.tables[name], data)
        return {"metadata": self.tables[name]}

    def _register(self, name, place):
        if name in self.tables:
            raise Refused(409, "there is a table")
        self.tables[name] = json.loads(self.store.get(place))
        return {"metadata": self.tables[name]}


def commit(before, data):
    """The metadata after a commit."""
    value = copy.deepcopy(before)
    for one in data["requirements"]:
        if one["type"] == "assert-table-uuid" and one["uuid"] != value["table-uuid"]:
            raise Refused(409, "another uuid")
        there = value["refs"].get(one.get("ref"), {})
        if one["type"] == "assert-ref-snapshot-id" and there.get("snapshot-id") != one["snapshot-id"]:
            raise Refused(409, "the ref moved")
    for one in data["updates"]:
        action = one["action"]
        if action == "add-schema":
            number = max(schema["schema-id"] for schema in value["schemas"]) + 1
            value["schemas"].append({**one["schema"], "schema-id": number})
        elif action == "set-current-schema":
            value["current-schema-id"] = one["schema-id"]
        elif action == "add-snapshot":
            snapshot = one["snapshot"]
            if snapshot["sequence-number"] <= value["last-sequence-number"]:
                raise Refused(400, "Cannot add snapshot with sequence number older than last sequence number")
            assert snapshot["schema-id"] in {schema["schema-id"] for schema in value["schemas"]}
            assert snapshot["snapshot-id"] not in {known["snapshot-id"] for known in value["snapshots"]}
            value["snapshots"].append(snapshot)
            value["last-sequence-number"] = snapshot["sequence-number"]
        elif action == "set-snapshot-ref":
            assert one["snapshot-id"] in {known["snapshot-id"] for known in value["snapshots"]}
            value["refs"][one["ref-name"]] = {"snapshot-id": one["snapshot-id"], "type": one["type"]}
            if one["ref-name"] == "main":
                value["current-snapshot-id"] = one["snapshot-id"]
        elif action == "remove-snapshot-ref":
            value["refs"].pop(one["ref-name"], None)
        elif action == "remove-snapshots":
            gone = set(one["snapshot-ids"])
            value["snapshots"] = [known for known in value["snapshots"] if known["snapshot-id"] not in gone]
            value["refs"] = {name: ref for name, ref in value["refs"].items() if ref["snapshot-id"] not in gone}
            assert "main" in value["refs"]
        elif action == "set-properties":
            value["properties"] = {**value.get("properties", {}), **one["updates"]}
        else:
            raise AssertionError(action)
    return value
