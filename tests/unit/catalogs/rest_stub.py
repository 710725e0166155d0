"""A REST catalog server in this process: the paths, bodies and statuses of Java's RESTCatalogServer.

Faults: `faults` is a queue of what
happens to the next calls, see `StubServer.send`.
"""

from __future__ import annotations

import json
import threading
import uuid
from urllib.parse import parse_qsl, unquote_plus

import msgspec
from unit.commit.support import Clock

from paimon_py import Catalog, PaimonError, Schema, Table
from paimon_py.codec.snapshot_json import snapshot_from_json, snapshot_to_json
from paimon_py.env import Env, SerialPool
from paimon_py.errors import AlreadyExistsError, BranchNotFoundError, NotFoundError, TagNotFoundError, UsageError
from paimon_py.maintain import branches as branch_work
from paimon_py.maintain.fast_forward import fast_forward
from paimon_py.maintain.rollback import rollback
from paimon_py.metadata.schemas import alter
from paimon_py.metastores.directories import DirectoryMetastore
from paimon_py.metastores.metastore import Database, TableName
from paimon_py.metastores.rest.client import RestClient
from paimon_py.metastores.rest.http import Answer, Unanswered, Unsent
from paimon_py.metastores.rest.metastore import RestMetastore
from paimon_py.spec import schema_changes as changes
from paimon_py.spec.layout import latest_hint_path, snapshot_path
from paimon_py.spec.new_schema import TableSpec, new_table_schema
from paimon_py.spec.type_text import parse_type, print_field
from paimon_py.storage.open import open_store

TOKEN = "sesame-bearer"
OPTIONS = {"metastore": "rest", "uri": "http://stub", "token.provider": "bear", "token": TOKEN}


class No(Exception):
    def __init__(self, status, resource=None, name=None, message="", code=None):
        self.status = status
        self.body = {"resourceType": resource, "resourceName": name, "message": message, "code": code or status}



class StubServer:
    """Databases and tables in a directory of the process's memory.

    Attributes:
        calls: method and path of all requests.
        faults: for each of the next calls None or one of "unsent", "before" (reset, nothing done), "after" (done, the
            answer lost), "500 before", "500 after", "503 before", "503 after", "garbled", "empty"; then all is well.
        then: what happens to the answer of the call that is being handled; set by tests in the place of a verb.
        vended: gives options and end of the credentials of a table, None: there are none.
        forbidden: names of tables that nobody may touch.
        replaces_nothing: as servers before Paimon 2.0.
    """

    def __init__(self, root=None, clock=None):
        self.root = root or f"memory://rest-{uuid.uuid4()}/w"
        self.clock = clock or Clock()
        self.store, self.place = open_store(self.root, {"fs.local.fsync": "false"})
        self.env = Env(self.clock, None, SerialPool())
        self.files = DirectoryMetastore(self.store, self.place, env=self.env, options={})
        self.config = {"defaults": {"prefix": "paimon", "warehouse": "warehouse"}, "overrides": {}}
        self.databases, self.tables, self.latest, self.views, self.functions = {}, {}, {}, {}, {}
        self.partitions, self.marked = {}, []
        self.calls, self.faults, self.forbidden, self.page_size, self.vended = [], [], set(), 100, None
        self.token, self.seen, self.then = TOKEN, [], None
        self.replaces_nothing = False
        self.turn = threading.RLock()

    # -- as a sender ------------------------------------------------------------------------------------------------

    def send(self, method, url, headers, body):
        with self.turn:
            return self.sent(method, url, headers, body)

    def sent(self, method, url, headers, body):
        fault = self.faults.pop(0) if self.faults else None
        path, _, query = url.removeprefix("http://stub").partition("?")
        self.calls.append(f"{method} {path}")
        self.seen.append((method, url, dict(headers), body))
        if fault == "unsent":
            return Unsent("connection refused")
        if fault == "before":
            return Unanswered("connection reset by peer")
        if fault in ("500 before", "503 before"):
            return self.answer(int(fault[:3]), {"message": "busy", "code": int(fault[:3])})
        done = self.handle(method, path, dict(parse_qsl(query)), headers, body)
        fault, self.then = self.then or fault, None
        if fault == "after":
            return Unanswered("connection closed")
        if fault in ("500 after", "503 after"):
            return self.answer(int(fault[:3]), {"message": "Service Failure", "code": int(fault[:3])})
        if fault == "garbled":
            return msgspec.structs.replace(done, body=b"<html>" + done.body[:5])
        if fault == "empty":
            return msgspec.structs.replace(done, body=b"")
        return done

    @staticmethod
    def answer(status, value=None):
        body = b"" if value is None else json.dumps(value).encode()
        return Answer(status, {"content-type": "application/json"} if body else {}, body)

    def handle(self, method, path, query, headers, body):
        if headers.get("Authorization") != f"Bearer {self.token}":
            return self.answer(401)
        try:
            value = self.routed(method, path, query, json.loads(body) if body else None)
            return self.answer(200, value)
        except No as no:
            return self.answer(no.status, no.body)
        except PaimonError as error:
            return self.answer(400, {"resourceType": None, "resourceName": None, "message": str(error), "code": 400})

    # -- as a server ------------------------------------------------------------------------------------------------

    def routed(self, method, path, query, body):
        if path == "/v1/config":
            return self.config
        parts = [unquote_plus(part) for part in path.removeprefix("/v1/paimon/").split("/")]
        if parts[0] == "databases" and len(parts) == 1:
            return self.on_databases(method, query, body)
        if parts == ["tables", "rename"]:
            return self.rename(body, self.tables, "TABLE")
        if parts == ["views", "rename"]:
            return self.rename(body, self.views, "VIEW")
        if parts[:2] == ["tables", "id"]:
            return self.by_id(parts[2])
        database = parts[1]
        if database not in self.databases:
            raise No(404, "DATABASE", database, f"Database {database} does not exist.")
        if len(parts) == 2:
            return self.on_database(method, database, body)
        if parts[2] == "register":
            return self.register(database, body)
        verb = {
            "tables": self.on_tables, "table-details": self.on_details, "views": self.on_views, "functions": self.on_functions,
        }[parts[2]]  # fmt: skip
        return verb(method, query, body, database, *parts[3:])

    def paged(self, key, names, query):
        def name_of(item):
            return item if isinstance(item, str) else item["name"]

        names = sorted(names, key=name_of)
        after = query.get("pageToken")
        rest = [item for item in names if after is None or name_of(item) > after]
        size = int(query.get("maxResults", self.page_size))
        page = rest[:size]
        return {key: page, "nextPageToken": name_of(page[-1]) if len(page) == size else None}

    def on_databases(self, method, query, body):
        if method == "GET":
            return self.paged("databases", self.databases, query)
        name = body["name"]
        if name in self.databases:
            raise No(409, "DATABASE", name, f"Database {name} already exists.")
        self.files.create_database(Database(name))
        self.databases[name] = dict(body["options"])
        return None

    def on_database(self, method, name, body):
        if method == "DELETE":
            for table in [table for table in self.tables if table.startswith(f"{name}.")]:
                del self.tables[table]
            self.files.drop_database(name)
            del self.databases[name]
            return None
        if method == "POST":
            options = self.databases[name]
            options.update(body["updates"])
            for key in body["removals"]:
                options.pop(key, None)
            return {"removed": body["removals"], "updated": list(body["updates"]), "missing": []}
        return {"id": "i", "name": name, "location": "/tmp", "options": self.databases[name], "owner": "owner",
                "createdAt": 1, "createdBy": "created", "updatedAt": 1, "updatedBy": "updated"}  # fmt: skip

    def rename(self, body, kept, resource):
        source, target = (f"{body[side]['database']}.{body[side]['object']}" for side in ("source", "destination"))
        if source not in kept:
            raise No(404, resource, body["source"]["object"], f"{source} does not exist.")
        if target in kept:
            raise No(409, resource, body["destination"]["object"], f"{target} already exists.")
        kept[target] = kept.pop(source)
        if source in self.latest:
            self.latest[target] = self.latest.pop(source)
        return None

    def on_tables(self, method, query, body, database, name=None, *rest):
        if name is None:
            if method == "GET":
                names = [full.partition(".")[2] for full in self.tables if full.startswith(f"{database}.") and "$" not in full]
                kind = query.get("tableType")
                if kind is not None:
                    names = [name for name in names if self.tables[f"{database}.{name}"].get("type", "table") == kind]
                return self.paged("tables", names, query)
            return self.create(database, body)
        full = f"{database}.{name}"
        if full not in self.tables:
            raise No(404, "TABLE", name, f"Table {full} does not exist.")
        if full in self.forbidden:
            raise No(403, "TABLE", name, f"Table {full} has no permission.")
        if not rest:
            return self.on_table(method, full, body)
        verb = {"replace": self.replace, "snapshot": self.snapshot, "snapshots": self.snapshots, "commit": self.commit, "token": self.hand_out,
                "rollback": self.roll_back, "branches": self.on_branches, "partitions": self.on_partitions}[rest[0]]  # fmt: skip
        return verb(method, full, body, *rest[1:])

    def create(self, database, body):
        name = TableName(database, body["identifier"]["object"])
        if str(name) in self.tables:
            raise No(409, "TABLE", name.table, f"Table {name} already exists.")
        told = body["schema"]
        columns = [(f["name"], parse_type(f["type"]), f.get("description"), f.get("defaultValue")) for f in told["fields"]]
        options = dict(told["options"])
        spec = TableSpec(primary_keys=tuple(told["primaryKeys"]), partition_keys=tuple(told["partitionKeys"]), options=options, comment=told["comment"])
        schema = new_table_schema(Schema(columns), spec, time_millis=self.clock.millis())
        external = options.get("path")
        root = self.files.find(name)
        if external is None:
            root.schemas.add(schema)
        self.tables[str(name)] = {"id": str(uuid.uuid4()), "path": external or root.path, "isExternal": external is not None}
        return None

    def register(self, database, body):
        name = f"{database}.{body['identifier']['object']}"
        if name in self.tables:
            raise No(409, "TABLE", name, f"Table {name} already exists.")
        self.tables[name] = {"id": str(uuid.uuid4()), "path": body["path"], "isExternal": False}
        found = self.table_root(name).snapshots.latest()
        if found is not None:
            self.latest[name] = found
        return None

    def replace(self, method, full, body):
        if self.replaces_nothing:
            raise No(404)
        told, root = body["schema"], self.table_root(full)
        before = root.schemas.latest()
        if list(before.partition_keys) != told["partitionKeys"]:
            raise No(501, "TABLE", full, "replaceTable does not support changing partition keys")
        Table(root, before, full).truncate()
        columns = [(f["name"], parse_type(f["type"]), f.get("description"), f.get("defaultValue")) for f in told["fields"]]
        spec = TableSpec(primary_keys=tuple(told["primaryKeys"]), partition_keys=tuple(told["partitionKeys"]),
                         options=told["options"], comment=told["comment"])  # fmt: skip
        made = new_table_schema(Schema(columns), spec, time_millis=self.clock.millis())
        root.schemas.add(msgspec.structs.replace(made, id=before.id + 1))
        self.latest[full] = root.snapshots.latest()
        return None

    def table_root(self, full):
        from paimon_py.metadata.root import TableRoot

        main, _, branch = full.partition("$branch_")
        root = TableRoot(self.store, open_store(self.tables[main]["path"], {})[1], self.env, {})
        return root.on_branch(branch) if branch else root

    def on_table(self, method, full, body):
        root, entry = self.table_root(full), self.tables[full]
        database, _, name = full.partition(".")
        if method == "DELETE":
            del self.tables[full]
            self.latest.pop(full, None)
            if not entry["isExternal"]:
                self.store.delete_tree(root.path)
            return None
        if method == "POST":
            alter(root.schemas, [change_of(told) for told in body["changes"]],
                  has_snapshots=lambda: full in self.latest, clock=self.clock)  # fmt: skip
            return None
        schema = root.schemas.latest()
        told = {
            "fields": [print_field(field) for field in schema.fields], "partitionKeys": schema.partition_keys,
            "primaryKeys": schema.primary_keys, "options": {**schema.options, **entry.get("options", {})},
            "comment": schema.comment,
        }  # fmt: skip
        return {**entry, "database": database, "name": name, "schemaId": schema.id, "schema": told, "owner": "owner",
                "createdAt": 1, "createdBy": "created", "updatedAt": 1, "updatedBy": "updated"}  # fmt: skip

    def by_id(self, number):
        for full, entry in self.tables.items():
            if entry["id"] == number:
                return self.on_table("GET", full, None)
        raise No(404, "TABLE", number, f"Table {number} does not exist.")

    def on_details(self, method, query, body, database):
        names = [full for full in self.tables if full.startswith(f"{database}.")]
        return self.paged("tableDetails", [self.on_table("GET", full, None) for full in names], query)

    def snapshot(self, method, full, body):
        if full not in self.latest:
            raise No(404, "SNAPSHOT", full.partition(".")[0], "No Snapshot")
        return {"snapshot": {"snapshot": json.loads(snapshot_to_json(self.latest[full])), "recordCount": 0,
                             "fileSizeInBytes": 0, "fileCount": 0, "lastFileCreationTime": 0}}  # fmt: skip

    def snapshots(self, method, full, body, version=None):
        found = self.table_root(full).snapshots.find(int(version))
        if found is None:
            raise No(404, "SNAPSHOT", full.partition(".")[0], "No Snapshot")
        return {"snapshot": json.loads(snapshot_to_json(found))}

    def commit(self, method, full, body):
        if body["tableId"] != self.tables[full]["id"]:
            raise No(404, "TABLE", full.partition(".")[2], f"Table {full} does not exist.")
        current = self.latest.get(full)
        if (None if current is None else current.uuid) != body["baseSnapshotUuid"]:
            return {"success": False}
        root, snapshot = self.table_root(full), snapshot_from_json(json.dumps(body["snapshot"]).encode(), "commit")
        if not self.store.put_new(snapshot_path(root.branch_path, snapshot.id), snapshot_to_json(snapshot)):
            return {"success": False}
        self.store.put(latest_hint_path(root.branch_path), str(snapshot.id).encode())
        self.latest[full] = snapshot
        for told in body["statistics"]:
            self.partitions.setdefault(full, {}).setdefault(json.dumps(told["spec"]), []).append(told)
        return {"success": True}

    def hand_out(self, method, full, body):
        options, end = self.vended(full)
        return {"token": options, "expiresAtMillis": end}

    def roll_back(self, method, full, body):
        root, instant = self.table_root(full), body["instant"]
        try:
            if instant["type"] == "tag":
                target = root.tags.get(instant["tagName"]).snapshot
            else:
                target = root.snapshots.get(instant["snapshotId"])
        except TagNotFoundError:
            raise No(404, "TAG", instant["tagName"], "") from None
        except NotFoundError:
            raise No(404, "SNAPSHOT", str(instant["snapshotId"]), "") from None
        rollback(root, target)
        self.latest[full] = target
        return None

    def on_branches(self, method, full, body, name=None, forward=None):
        root = self.table_root(full)
        if method == "GET":
            from paimon_py.metadata.branches import branch_names

            return {"branches": branch_names(root) or None}
        try:
            if method == "DELETE":
                branch_work.delete_branch(root, name)
                self.tables.pop(f"{full}$branch_{name}", None)
                self.latest.pop(f"{full}$branch_{name}", None)
            elif forward:
                fast_forward(root, name, discard=True)
                self.latest[full] = self.latest[f"{full}$branch_{name}"]
            else:
                made = branch_work.create_branch(root, body["branch"], body["fromTag"])
                named = f"{full}$branch_{body['branch']}"
                self.tables[named] = self.tables[full]
                if made.snapshots.latest() is not None:
                    self.latest[named] = made.snapshots.latest()
        except BranchNotFoundError as error:
            raise No(404, "BRANCH", name, str(error)) from None
        except TagNotFoundError as error:
            raise No(404, "TAG", body["fromTag"], str(error)) from None
        except AlreadyExistsError as error:
            raise No(409, "BRANCH", body["branch"], str(error)) from None
        return None

    def on_partitions(self, method, full, body, verb=None):
        if self.table_root(full).schemas.latest().options.get("metastore.partitioned-table") != "true":
            raise No(501)
        if verb == "mark":
            self.marked += body["specs"]
            return None
        told = []
        for spec, rows in self.partitions.get(full, {}).items():
            sums = {name: sum(row[name] for row in rows) for name in ("recordCount", "fileSizeInBytes", "fileCount")}
            told.append({**rows[-1], **sums, "spec": json.loads(spec), "done": json.loads(spec) in self.marked})
        return {"partitions": told, "nextPageToken": None}

    def on_views(self, method, query, body, database, name=None):
        if name is None:
            if method == "GET":
                return self.paged("views", [full.partition(".")[2] for full in self.views if full.startswith(f"{database}.")], query)
            return self.keep_new(self.views, "VIEW", database, body["identifier"]["object"], body["schema"])
        kept = self.kept(self.views, "VIEW", database, name)
        if method == "DELETE":
            del self.views[f"{database}.{name}"]
            return None
        if method == "POST":
            self.change(kept, "dialects", "dialect", "DIALECT", "query", body["changes"])
            return None
        return {"id": "id", "name": name, "schema": kept, "owner": "owner", "createdAt": 1, "createdBy": "created",
                "updatedAt": 1, "updatedBy": "updated"}  # fmt: skip

    def on_functions(self, method, query, body, database, name=None):
        if name is None:
            if method == "GET":
                return self.paged("functions", [full.partition(".")[2] for full in self.functions if full.startswith(f"{database}.")], query)
            return self.keep_new(self.functions, "DEFINITION", database, body["name"], body)
        kept = self.kept(self.functions, "FUNCTION", database, name)
        if method == "DELETE":
            del self.functions[f"{database}.{name}"]
            return None
        if method == "POST":
            self.change(kept, "definitions", "name", "DEFINITION", "definition", body["changes"])
            return None
        return {**kept, "uuid": "u", "owner": "owner", "createdAt": 1, "createdBy": "owner", "updatedAt": 1, "updatedBy": "owner"}

    @staticmethod
    def keep_new(kept, resource, database, name, value):
        if f"{database}.{name}" in kept:
            raise No(409, resource, name, f"{database}.{name} already exists.")
        kept[f"{database}.{name}"] = value

    @staticmethod
    def kept(kept, resource, database, name):
        if f"{database}.{name}" not in kept:
            raise No(404, resource, name, f"{database}.{name} does not exist.")
        return kept[f"{database}.{name}"]

    @staticmethod
    def change(kept, part, key, resource, value, changes):
        for told in changes:
            action, held = told["action"], kept[part]
            if action == "setOption":
                kept["options"] = {**kept["options"], told["key"]: told["value"]}
            elif action == "removeOption":
                kept["options"] = {name: text for name, text in kept["options"].items() if name != told["key"]}
            elif action == "updateComment":
                kept["comment"] = told["comment"]
            elif action.startswith("add"):
                if told[key] in held:
                    raise No(409, resource, told[key], "already exists")
                held[told[key]] = told[value]
            elif told[key] not in held:
                raise No(404, resource, told[key], "does not exist")
            elif action.startswith("update"):
                held[told[key]] = told[value]
            else:
                del held[told[key]]


def change_of(told):
    """A schema change of its JSON."""
    action, path = told["action"], told.get("fieldNames")
    column = path[0] if path and len(path) == 1 else path
    match action:
        case "setOption":
            return changes.SetOption(told["key"], told["value"])
        case "removeOption":
            return changes.RemoveOption(told["key"])
        case "addColumn":
            return changes.AddColumn(column, parse_type(told["dataType"]), told["comment"], position_of(told["move"]))
        case "renameColumn":
            return changes.RenameColumn(column, told["newName"])
        case "dropColumn":
            return changes.DropColumn(column)
        case "updateColumnType":
            return changes.UpdateColumnType(column, parse_type(told["newDataType"]), told["keepNullability"], allow_narrowing=True)
        case "updateColumnNullability":
            return changes.UpdateColumnNullability(column, told["newNullability"])
        case "updateColumnComment":
            return changes.UpdateColumnComment(column, told["newComment"])
        case "updateColumnDefaultValue":
            return changes.UpdateColumnDefault(column, told["newDefaultValue"])
        case "updateColumnPosition":
            return changes.UpdateColumnPosition(told["move"]["fieldName"], position_of(told["move"]))
        case "updateComment":
            return changes.UpdateComment(told["comment"])
    raise UsageError(f"no change: {told}")


def position_of(move):
    if move is None:
        return None
    match move["type"]:
        case "FIRST":
            return changes.First()
        case "LAST":
            return changes.Last()
        case "AFTER":
            return changes.After(move["referenceFieldName"])
    return changes.Before(move["referenceFieldName"])


def metastore_of(server, env=None, **options):
    used = env or Env(server.clock, None, SerialPool())
    return RestMetastore(RestClient({**OPTIONS, "warehouse": "warehouse", **options}, used, sender=server))


def catalog_of(server, env=None, **options):
    """A catalog that asks a stub."""
    metastore = metastore_of(server, env, **options)
    return Catalog.of(metastore, env=metastore.client.env)
