"""Markers in every option, part of a URL and credential; none of them in a text, a pickle, or what stands behind an error."""

from __future__ import annotations

import json
import logging
import pickle
import warnings

import pyarrow as pa
import pytest
from unit.public import KEYED, ROWS, env

from paimon_py import (
    AddColumn,
    Catalog,
    OptionError,
    PaimonError,
    PaimonWarning,
    Schema,
    SetOption,
    StorageError,
    Table,
    UsageError,
)
from paimon_py.errors import CorruptionError
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.new_schema import TableSpec, new_table_schema
from paimon_py.spec.options import Options
from paimon_py.spec.redact import harmless_options, shown_options, shown_text, shown_url, without_user
from paimon_py.storage.exclusive_create import KNOWN
from paimon_py.storage.fsspec_store import FsspecStore
from paimon_py.storage.open import open_store

MARK = "sesame"
"""Part of every text that must stay in the process."""

UNKNOWN = {
    "jdbc.password": "sesame-jdbc", "jdbc.user": "sesame-user", "header.Authorization": "Bearer sesame-header",
    "uri": "https://u:sesame-uri@host/?token=sesame-query", "token": "sesame-token", "dlf.access-key-secret": "sesame-dlf",
    "table-default.s3.secret-key": "sesame-default", "table-default.jdbc.password": "sesame-default-jdbc",
    "table-default.fields.v.password": "sesame-default-field", "fs.oss.accessKeySecret": "sesame-oss",
    "my.own": "sesame-own", "hadoop.security": "sesame-hadoop", "warehouse": "s3://u:sesame-warehouse@b/w?x=sesame-q",
    "table-default.commit.callback.a.B.param": "sesame-param", "partition.mark-done-action.http.params": "sesame-done",
    "table-default.parquet.encryption.footer.key": "sesame-footer", "lineage-meta.password": "sesame-lineage",
}  # fmt: skip
HARMLESS = {"fs.local.fsync": "false", "table-default.bucket": "3", "table-default.fields.v.ignore-retract": "true"}
STORES = {
    "s3://bucket/w": {
        "s3.access-key": "sesame-access", "s3.secret-key": "sesame-secret", "s3.session-token": "sesame-session",
        "s3.endpoint": "http://sesame-user:sesame-password@h:1/?X-Amz-Signature=sesame-signature", "s3.region": "r",
    },
    "s3a://bucket/w": {"fs.s3a.access.key": "sesame-access", "fs.s3a.secret.key": "sesame-secret",
                       "fs.s3a.endpoint": "sesame-user:sesame-password@h:1"},
    "gs://bucket/w": {"fs.gs.auth.service.account.json.keyfile": "/sesame-key.json", "fs.gs.project.id": "p",
                      "fs.gs.storage.root.url": "https://u:sesame-password@gcs/?sig=sesame-signature"},
    "abfss://container@account.dfs.core.windows.net/w": {
        "fs.azure.account.key.account.dfs.core.windows.net": "sesame-key",
        "fs.azure.sas.fixed.token.account.dfs.core.windows.net": "?sv=1&sig=sesame-sas",
        "fs.azure.account.oauth2.client.id": "id",
        "fs.azure.account.oauth2.client.secret": "sesame-secret",
        "fs.azure.account.oauth2.client.endpoint": "https://u:sesame-password@login.microsoftonline.com/tenant/oauth2/token?x=sesame-query",
    },
    "ftp://sesame-user@host/w": {},
    "hdfs://host/w": {"hadoop.dfs.encryption.key": "sesame-key", "security.kerberos.login.principal": "sesame@HERE",
                      "security.kerberos.login.keytab": "/sesame.keytab", "hadoop.dfs.nameservices": "lake"},
}  # fmt: skip


def leaks(value):
    """Where a marker shows in a value: its texts, its pickle, and for errors all that stands behind it."""
    found = [text for text in (repr(value), str(value), f"{value}") if MARK in text]
    data = pickle.dumps(value)
    if MARK.encode() in data:
        found.append(data)
    if isinstance(value, BaseException):
        found += behind(value)
    return found


def behind(error, known=()):
    """Texts with a marker in an error, its notes, its attributes, its cause and its context."""
    if error is None or any(error is one for one in known):
        return []
    texts = [str(error), repr(error), repr(error.args), repr(vars(error)), *getattr(error, "__notes__", ())]
    found = [text for text in texts if MARK in text]
    known = (*known, error)
    return found + behind(error.__cause__, known) + behind(error.__context__, known)


def caught(call):
    """The error of a call, with all that was warned and logged."""
    with pytest.raises(PaimonError) as raised:
        call()
    return raised.value


def objects(store, location, options):
    catalog = Catalog(store, location, options=options, table_defaults={
        name.removeprefix("table-default."): text for name, text in options.items() if name.startswith("table-default.")
    })  # fmt: skip
    root = TableRoot(store, f"{location}/d.db/t", env(), options)
    table = Table(root, SCHEMA, "d.t")
    return catalog, table, table.scan(columns=["k"]), table.scan(snapshot_id=3), root, root.files, store, root.schemas


SCHEMA = new_table_schema(Schema([("k", "INT")]), TableSpec(), time_millis=0)


@pytest.mark.parametrize("url", [*STORES, "memory://w", "/tmp/w"])
def test_no_value_shows_or_sends_what_is_not_known_to_be_harmless(url):
    options = {**STORES.get(url, {}), **UNKNOWN, **HARMLESS}
    try:
        store, location = open_store(url, options)
    except UsageError as error:
        assert "not installed" in str(error) and not leaks(error)
        pytest.skip(f"no package for {url.partition(':')[0]}")
    assert MARK not in location
    values = objects(store, location, options)
    for value in values:
        assert not leaks(value), type(value)
    catalog = pickle.loads(pickle.dumps(values[0]))
    assert catalog._metastore.options == {**{name: text for name, text in options.items() if name in KEPT}, **HARMLESS, **CLEANED.get(url, {})}
    assert catalog._table_defaults == {"bucket": "3", "fields.v.ignore-retract": "true"}


KEPT = {"hadoop.dfs.nameservices", "s3.region", "fs.gs.project.id", "fs.azure.account.oauth2.client.id"}
CLEANED = {
    "s3://bucket/w": {"s3.endpoint": "http://h:1/"},
    "s3a://bucket/w": {"fs.s3a.endpoint": "h:1"},
    "gs://bucket/w": {"fs.gs.storage.root.url": "https://gcs/"},
    "abfss://container@account.dfs.core.windows.net/w": {
        "fs.azure.account.oauth2.client.endpoint": "https://login.microsoftonline.com/tenant/oauth2/token"
    },
}


def test_a_worker_keeps_what_is_harmless_and_finds_credentials_itself():
    store = FsspecStore.open("s3", "s3://bucket/w", STORES["s3://bucket/w"])
    assert pickle.loads(pickle.dumps(store))._arguments == {
        "client_kwargs": {"endpoint_url": "http://h:1/", "region_name": "r"}
    }
    public = FsspecStore.open("gs", "gs://b/w", {"fs.gs.auth.type": "UNAUTHENTICATED"})
    assert pickle.loads(pickle.dumps(public))._arguments == {"token": "anon"}


# -- errors ---------------------------------------------------------------------------------------------------------------


class Leaking:
    """A file system whose errors say all that they know."""

    def __init__(self, make):
        self.make = make

    def __getattr__(self, name):
        def fail(*arguments, **named):
            raise self.make()

        return fail


def chained(text, kind=ValueError):
    """Errors that have a text in one of the places where an error may have it."""

    def alone():
        return kind(text)

    def as_cause():
        error = kind("plain")
        error.__cause__ = OSError(text)
        return error

    def as_context():
        error = kind("plain")
        error.__context__ = OSError("in between")
        error.__context__.__context__ = OSError(text)
        return error

    def as_note():
        error = kind("plain")
        error.add_note(text)
        return error

    def deep():
        error = inner = kind("plain")
        for number in range(30):
            inner.__cause__ = OSError(f"link {number}")
            inner = inner.__cause__
        inner.__cause__ = OSError(text)
        return error

    def as_attribute():
        error = kind("plain")
        error.__cause__ = json.JSONDecodeError("Expecting ','", f"a file that says {text}", 3)
        return error

    return [alone, as_cause, as_context, as_note, as_attribute, deep]


KEY_FILE = '{"type": "service_account", "private_key_id": "sesame-key-id-123", "token_uri": "http://h/sesame-token-uri", "private_key": "-----BEGIN\\nsesame-line-1-of-key\\nsesame-line-2-of-key\\n"}'
TEXTS = {
    "s3": ["sesame-secret", "denied for sesame-access at http://sesame-user:sesame-password@h:1/b?X-Amz-Signature=sesame-signature",
           "https://b.s3/k?X-Amz-Credential=sesame", "Authorization: Bearer sesame", "'http://any:sesame@h/x'", "SharedKey a:sesame",
           "%73 sesame-secret", "env sesame-environment"],
    "gs": ["Max retries exceeded with url: /sesame-token-uri", "bad key sesame-line-2-of-key", "sesame-key-id-123", "{'private_key_id': 'sesame-key-id-123'}", KEY_FILE, repr(KEY_FILE),
           "https://storage/b/o?access_token=sesame", "Bearer sesame", "sesame-line-in-default"],
    "abfs": ["AccountKey=sesame-key;", "https://a.blob/c?sv=1&sig=sesame-sas", "sv=1&sig=sesame-sas", "sesame-secret"],
}  # fmt: skip


@pytest.fixture
def credentials(tmp_path, monkeypatch):
    key = tmp_path / "key.json"
    key.write_text(KEY_FILE)
    default = tmp_path / "default.json"
    default.write_text(KEY_FILE.replace("line-1-of-key", "line-in-default"))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "sesame-environment")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(default))
    return {
        "s3": ("s3://bucket/w", STORES["s3://bucket/w"]),
        "gs": ("gs://bucket/w", {"fs.gs.auth.service.account.json.keyfile": str(key)}),
        "abfs": ("abfss://container@account.dfs.core.windows.net/w", STORES["abfss://container@account.dfs.core.windows.net/w"]),
    }


def verbs(store, path):
    store._endpoint = KNOWN
    return [
        lambda: store.get(path), lambda: store.put(path, b"x"), lambda: store.list(path), lambda: store.stat(path),
        lambda: store.delete(path), lambda: store.delete_tree(path), lambda: store.open_read(path),
        lambda: store.open_write(path), lambda: store.put_new(path, b"x"),
    ]  # fmt: skip


@pytest.mark.parametrize("scheme", TEXTS)
@pytest.mark.parametrize("kind", [ValueError, PermissionError, FileNotFoundError, TimeoutError])
def test_no_error_of_a_store_says_or_holds_a_secret(scheme, kind, credentials):
    url, options = credentials[scheme]
    for text in TEXTS[scheme]:
        for make in chained(text, kind):
            store, location = open_store(url, options)
            store._system = lambda *, once=False, make=make: Leaking(make)
            for call in verbs(store, f"{location}/f"):
                try:
                    call()
                except PaimonError as error:
                    assert not leaks(error), (text, make.__name__)


@pytest.mark.parametrize("scheme", TEXTS)
def test_no_error_of_a_table_says_or_holds_a_secret(scheme, credentials):
    url, options = credentials[scheme]
    for make in chained(TEXTS[scheme][0]):
        store, location = open_store(url, options)
        store._system = lambda *, once=False, make=make: Leaking(make)
        catalog, table, *_ = objects(store, location, {**options, **UNKNOWN})
        for call in (
            table.snapshot, table.snapshots, table.tags, lambda: table.scan().to_arrow(), lambda: table.scan().explain(),
            lambda: table.write_arrow(pa.table({"k": pa.array([1], pa.int32())})), lambda: table.alter(AddColumn("x", "INT")),
            lambda: table.compact(), lambda: table.create_tag("x"), catalog.databases, lambda: catalog.tables("d"),
            lambda: catalog.create_table("d.t", KEYED), lambda: catalog.drop_table("d.t"),
        ):  # fmt: skip
            error = caught(call)
            assert isinstance(error, StorageError) and not leaks(error)


def test_an_error_that_has_no_secret_is_shown_with_its_cause():
    store, location = open_store("s3://bucket/w", STORES["s3://bucket/w"])
    store._system = lambda *, once=False: Leaking(lambda: PermissionError("AccessDenied: not yours"))
    error = caught(lambda: store.get(f"{location}/f"))
    assert "AccessDenied: not yours" in str(error)
    assert isinstance(error.__cause__, PermissionError) and error.__context__ is error.__cause__


URLS = [
    "s3://sesame-key@bucket/t", "s3://key:sesame@bucket/t", "gs://sesame@bucket/t", "https://sesame@host/t", "http://u:sesame@host/t",
    "https://host/t?sig=sesame", "abfss://c@a.dfs.core.windows.net/t?sig=sesame", "abfss://c:sesame@a.dfs.core.windows.net/t",
    "sftp://u:sesame@host/t", "ftp://u:sesame@host/t", "memory://u:sesame@x/t", "memory://sesame@x/t", "memory://x/t?t=sesame",
    "file://sesame@host/t", "file://u:sesame@host/t", "nothing://u:sesame@host/t", "s3://u:sesame@bucket/../t", "s3://u:sesame@b/t\0",
    "https://u:se/sesame@host/t",
]  # fmt: skip


@pytest.mark.parametrize("url", URLS)
def test_urls_with_user_information_or_a_query_are_refused_and_not_repeated(url):
    for call in (lambda: Table.open(url), lambda: Catalog.open(url), lambda: Catalog.open(options={"warehouse": url})):
        error = caught(call)
        assert isinstance(error, UsageError) and not leaks(error)


def test_calls_with_wrong_arguments_do_not_repeat_them(tmp_path):
    catalog = Catalog.open(tmp_path / "w", {"fs.local.fsync": "false"})
    catalog.create_database("d")
    table = catalog.create_table("d.t", KEYED)
    pairs = [("jdbc.password", "sesame")]
    for call in (
        lambda: Table.open("s3://b/t", pairs), lambda: Table.open("s3://b/t", {"jdbc.password": b"sesame"}),
        lambda: Catalog.open(b"s3://u:sesame@b/t"), lambda: catalog.create_table("d.u", KEYED, options=pairs),
        lambda: catalog.create_table("d.u", KEYED, options={"jdbc.password": ["sesame"]}),
        lambda: catalog.create_table("d.u", KEYED, options={"buckett": "sesame"}),
        lambda: table.scan(options=pairs), lambda: Catalog.open("memory://w", pairs),
        lambda: Catalog.open("memory://w", {("jdbc.password", "sesame"): ""}), lambda: catalog.create_database("e", options=pairs),
        lambda: Table.open("s3://b/t", {"s3.access-key": "sesame"}),
    ):  # fmt: skip
        error = caught(call)
        assert isinstance(error, UsageError) and not leaks(error)


# -- tables ---------------------------------------------------------------------------------------------------------------


def test_options_of_a_table_that_nobody_knows_are_hidden_in_texts_and_pickles(tmp_path, caplog):
    with pytest.warns(PaimonWarning, match="'jdbc.password' of 'jdbc'") as warned:
        catalog = Catalog.open(tmp_path / "w", {"fs.local.fsync": "false", **{"jdbc.password": "sesame-jdbc"}})
    assert MARK not in str(warned[0].message)
    catalog.create_database("d")
    options = {"jdbc.password": "sesame", "header.Authorization": "sesame", "s3.secret-key": "sesame", "bucket": "2",
               "parquet.encryption.key": "sesame", "parquet.block.size": "1048576", "manifest-sort.enabled": "true"}  # fmt: skip
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        table = catalog.create_table("d.t", KEYED, primary_key=["p", "k"], options=options)
        table.write_arrow(ROWS)
        table.alter(SetOption("my.password", "sesame"))
    assert told and not any(MARK in str(warning.message) for warning in told) and MARK not in caplog.text
    assert table.options["jdbc.password"] == "sesame"
    values = (catalog, table, table.schema, table.scan(), table.snapshot(), table.scan().explain(), *table.scan().splits(),
              SetOption("jdbc.password", "sesame"), Options(table.options), table.snapshot().manifests()[0])  # fmt: skip
    for value in values:
        if not isinstance(value, (SetOption, Options)):
            assert not leaks(value), type(value)
        assert MARK not in repr(value) + str(value)
    again = pickle.loads(pickle.dumps(table))
    assert again.options["jdbc.password"] == "***" and again.options["bucket"] == "2"
    assert again.options["parquet.block.size"] == "1048576"
    with pytest.warns(PaimonWarning, match="manifest-sort.enabled"):
        assert again.write_arrow(ROWS).snapshot_id == 2 and again.scan().count() == 2
    assert again.alter(SetOption("num-levels", "5")).options["jdbc.password"] == "sesame"


def test_external_paths_with_user_information_are_refused_and_not_repeated(tmp_path):
    catalog = Catalog.open(tmp_path / "w", {"fs.local.fsync": "false"})
    catalog.create_database("d")
    name = "data-file.external-paths"
    for url in ("s3://k:sesame@b/x", "ftp://sesame@h/x", "s3://b/x?sig=sesame", "s3://b/y,s3://sesame@b/x"):
        options = {name: url, f"{name}.strategy": "round-robin"}
        error = caught(lambda options=options: catalog.create_table("d.t", KEYED, options=options))
        assert isinstance(error, OptionError) and not leaks(error)
    root = TableRoot(catalog._metastore._store, str(tmp_path), env(), {name: "s3://b/x"})
    for path in ("s3://k:sesame@c/x", "s3://b/x/../y?sig=sesame", "https://sesame@h/x#sesame"):
        error = caught(lambda path=path: root.files.stat(path))
        assert isinstance(error, CorruptionError) and not leaks(error)


# -- how it is shown ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://u:p@h:1/x?sig=1#f", "https://h:1/x"), ("abfss://c@a.dfs/x", "abfss://c@a.dfs/x"),
        ("abfss://c:pw@a/x", "abfss://a/x"), ("s3://k@b/x", "s3://b/x"), ("/plain/a@b?c", "/plain/a@b?c"),
        ("file:/x?y", "file:/x?y"), ("file:///x?y", "file:///x"), ("s3://b/p=a%3Ab/f@x", "s3://b/p=a%3Ab/f@x"),
        ("http://h/a b?x", "http://h/a b"), ("https://u:p/w@h:80/x", "https://h:80/x"), ("http://h:80/a@b", "http://h:80/a@b"),
        ("https://u:p'w@h/x", "https://h/x"), ("https://u:p@w@h/x", "https://h/x"), ("S3://k@b", "S3://b"), ("", ""), ("jdbc:mysql://u:p@h/db?password=x", "jdbc:mysql://h/db"), ("a:b:c//x", "a:b:c//x"), ("thrift://u@h:9", "thrift://h:9"),
    ],
)  # fmt: skip
def test_urls_are_shown_without_user_information_and_query(url, shown):
    assert shown_url(url) == shown == shown_url(shown)
    assert without_user(shown) == shown


def test_texts_of_others_are_shown_with_clean_urls():
    text = "GET 'https://u:p@h/x?sig=1', \"http://h/y?t=2\" Bearer abc.def; plain s3://b/k"
    assert shown_text(text) == "GET 'https://h/x', \"http://h/y\" Bearer ***; plain s3://b/k"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("The request signature we calculated does not match the signature you provided", None),
        ("Unable to locate credentials. Basic authentication is off; the token of the page is missing", None),
        ("Authorization: Basic dTpw", "Authorization: ***"), ("{'Authorization': 'Bearer abc'}", "{'Authorization': '***'}"),
        ("AWS4-HMAC-SHA256 Credential=A/2, Signature=ab", "AWS4-HMAC-SHA256 Credential=***, Signature=***"),
        ("X-Amz-Security-Token=abc&x", "X-Amz-Security-Token=***&x"), ("SharedKey a:b= ok", "SharedKey *** ok"),
        ("no password=abc", "no password=***"), ("url: /tokeninfo?access_token=%7Babc (Caused", "url: /tokeninfo?access_token=*** (Caused"),
    ],
)  # fmt: skip
def test_what_signs_is_hidden_and_nothing_else(text, shown):
    assert shown_text(text) == (text if shown is None else shown)


def test_only_options_that_are_known_are_harmless():
    options = {"bucket": "2", "fields.secret.sequence-group": "a", "file-index.bloom-filter.token.fpp": "0.1", "x": "y", "orc.key": "k"}
    assert list(harmless_options(options)) == ["bucket", "fields.secret.sequence-group", "file-index.bloom-filter.token.fpp"]
    assert shown_options(options) == {**options, "x": "***", "orc.key": "***"}
