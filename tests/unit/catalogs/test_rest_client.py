"""The client of a REST catalog: configuration, who asks, pages, retries, and errors by status."""

from __future__ import annotations

import http.server
import json
import logging
import pickle
import threading

import pytest
from unit.catalogs.rest_stub import OPTIONS, TOKEN
from unit.commit.support import Clock

from paimon_py import Catalog, OptionError, StorageError, UnsupportedError, UsageError
from paimon_py.env import Env, SerialPool
from paimon_py.errors import StorageUnknownError
from paimon_py.metastores.rest.client import RestClient
from paimon_py.metastores.rest.http import Answer, HttpSender, Unanswered, Unsent
from paimon_py.metastores.rest.messages import DatabaseAnswer, DatabasePage
from paimon_py.metastores.rest.signing import (
    AccessKeys,
    HttpRequest,
    default_headers,
    host_in,
    openapi_headers,
    region_in,
)
from paimon_py.metastores.rest.transport import RestRefusedError

DLF = {"metastore": "rest", "uri": "https://cn-hangzhou-vpc.dlf.aliyuncs.com", "token.provider": "dlf"}


class Script:
    """A sender that gives what it was told, and the last of it from then on."""

    def __init__(self, *replies):
        self.replies, self.sent = list(replies), []

    def send(self, method, url, headers, body):
        self.sent.append((method, url, dict(headers), body))
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


def ok(value):
    return Answer(200, {}, json.dumps(value).encode())


def no(status, headers=None, **body):
    return Answer(status, headers or {}, json.dumps(body).encode() if body else b"")


def client(*replies, merged=None, **options):
    script = Script(*replies)
    made = RestClient({**OPTIONS, **options}, Env(Clock(), None, SerialPool()), sender=script, merged=merged or {"prefix": "p"})
    return made, script


# -- configuration ------------------------------------------------------------------------------------------------------


def test_user_options_override_defaults_and_are_overridden_by_the_server():
    script = Script(ok({"defaults": {"prefix": "a b", "x": "1", "y": "1", "header.h1": "one"}, "overrides": {"y": "3", "z": None}}), ok({"databases": []}))
    made = RestClient({**OPTIONS, "warehouse": "w/1", "x": "2", "y": "2", "header.User-Agent": "me"}, Env(Clock(), None, SerialPool()), sender=script)
    assert {name: made.options()[name] for name in "xy"} == {"x": "2", "y": "3"}
    assert "z" not in made.options()
    made.get(made.path("databases"), DatabasePage)
    assert [url for _, url, _, _ in script.sent] == ["http://stub/v1/config?warehouse=w%2F1", "http://stub/v1/a+b/databases"]
    assert script.sent[0][2]["User-Agent"] == "me" and "h1" not in script.sent[0][2]
    assert script.sent[1][2] == {"Accept": "application/json", "User-Agent": "me", "h1": "one", "Authorization": f"Bearer {TOKEN}"}


@pytest.mark.parametrize("uri, error, match", [
    (None, UsageError, "needs the option 'uri'"), ("", UsageError, "needs the option 'uri'"),
    ("https://u:pw@host", OptionError, "not contain a user, password or query"), ("http://host/?a=b", OptionError, "not contain a user"),
    ("ftp://host", OptionError, "is not the address"), ("http://", OptionError, "is not the address"), ("http://a b", OptionError, "is not"),
])  # fmt: skip
def test_an_invalid_address_is_refused(uri, error, match):
    with pytest.raises(error, match=match) as caught:
        RestClient({**OPTIONS, "uri": uri} if uri is not None else {}, Env())
    assert "pw" not in str(caught.value)


def test_an_address_needs_no_scheme_and_no_slash():
    assert repr(client(ok({}), uri="host:80/")[0]) == "RestClient('http://host:80')"


@pytest.mark.parametrize("options, error, match", [
    ({"token.provider": ""}, UsageError, "'bear' with 'token', or 'dlf'"),
    ({"token.provider": "kerberos"}, UnsupportedError, "'kerberos' is not supported"),
    ({"token": None}, UsageError, "needs the option 'token'"),
    ({"token": "a\nb"}, OptionError, "is not a token"),
    ({"token.provider": "dlf", "uri": "https://cn-x.dlf"}, UsageError, "dlf.access-key-id"),
    ({"token.provider": "dlf", "dlf.signing-algorithm": "v9"}, OptionError, "must be one of 'default', 'openapi'"),
    ({"token.provider": "dlf", "uri": "http://127.0.0.1", "dlf.access-key-id": "a", "dlf.access-key-secret": "b"}, OptionError, "'dlf.region'"),
    ({"token.provider": "dlf", "dlf.region": "r", "dlf.token-loader": "vault"}, UnsupportedError, "'local_file' or 'ecs'"),
    ({"token.provider": "dlf", "dlf.region": "r", "dlf.token-loader": "local_file"}, OptionError, "dlf.token-path"),
    ({"header.a": "x\ny"}, OptionError, "is not a header"),
])  # fmt: skip
def test_authentication_options_are_checked_before_any_request(options, error, match):
    given = {name: text for name, text in {**OPTIONS, **options}.items() if text is not None}
    script = Script(ok({"databases": []}))
    made = RestClient(given, Env(Clock(), None, SerialPool()), sender=script, merged={**given, "prefix": "p"})
    with pytest.raises(error, match=match):
        made.get(made.path("databases"), DatabasePage)
    assert script.sent == []


def test_a_misspelled_option_is_refused_with_the_right_name():
    with pytest.raises(OptionError, match="did you mean 'token.provider'"):
        Catalog.open("w", {**OPTIONS, "token.providr": "bear"})


# -- tokens and signatures ----------------------------------------------------------------------------------------------


def test_a_token_in_a_file_is_read_again(tmp_path):
    path = tmp_path / "token"
    path.write_text("first\n")
    made, script = client(ok({"databases": []}))
    made._given.pop("token")
    made._given["token.provider.path"] = str(path)
    made.get(made.path("databases"), DatabasePage)
    path.write_text("second")
    made.get(made.path("databases"), DatabasePage)
    assert [headers["Authorization"] for _, _, headers, _ in script.sent] == ["Bearer first", "Bearer second"]


def test_signatures_equal_those_of_java():
    body = '{"name":"database","options":{"a":"b"}}'
    request = HttpRequest("POST", "/v1/paimon/databases", {"k2": "v2", "k1": "v1"}, body)
    keys = AccessKeys("access-key-id", "access-key-secret", "securityToken")
    headers = default_headers(request, keys, "cn-hangzhou", 1_701_605_532_000)
    assert headers["Authorization"] == (
        "DLF4-HMAC-SHA256 Credential=access-key-id/20231203/cn-hangzhou/DlfNext/aliyun_v4_request,"
        "Signature=c72caf1d40b55b1905d891ee3e3de48a2f8bebefa7e39e4f277acc93c269c5e3"
    )
    assert headers["x-dlf-date"] == "20231203T121212Z" and headers["x-dlf-security-token"] == "securityToken"


def test_an_openapi_signature_covers_the_request_as_sent():
    request = HttpRequest("GET", "/dlf/v1/c/databases/d/tables/a%24b", {"maxResults": "3", "empty": ""})
    keys = AccessKeys("id", "key", "st")
    headers = openapi_headers(request, keys, host_in("https://dlfnext.cn-beijing.aliyuncs.com/x"), 1_744_775_086_000, "nonce")
    assert headers["Date"] == "Wed, 16 Apr 2025 03:44:46 GMT" and headers["Host"] == "dlfnext.cn-beijing.aliyuncs.com"
    import base64
    import hashlib
    import hmac

    text = (
        "GET\napplication/json\n\n\nWed, 16 Apr 2025 03:44:46 GMT\nx-acs-security-token:st\nx-acs-signature-method:HMAC-SHA1\n"
        "x-acs-signature-nonce:nonce\nx-acs-signature-version:1.0\nx-acs-version:2026-01-18\n/dlf/v1/c/databases/d/tables/a$b?empty&maxResults=3"
    )
    signature = base64.b64encode(hmac.new(b"key", text.encode(), hashlib.sha1).digest()).decode()
    assert headers["Authorization"] == f"acs id:{signature}"
    assert "Content-MD5" not in headers and "Content-MD5" in openapi_headers(HttpRequest("POST", "/x", {}, "{}"), keys, "h", 0, "n")


@pytest.mark.parametrize("uri, region", [
    ("https://cn-hangzhou-vpc.dlf.aliyuncs.com", "cn-hangzhou"), ("http://pre-ap-southeast-1.x", "ap-southeast-1"), ("us-west-1.y", "us-west-1"),
])  # fmt: skip
def test_the_region_is_taken_from_the_address(uri, region):
    assert region_in(uri) == region


def keys_json(number, expires):
    return json.dumps({"AccessKeyId": f"id{number}", "AccessKeySecret": f"sesame{number}", "SecurityToken": "st", "Expiration": expires, "More": 1})


def test_keys_in_a_file_are_read_again_an_hour_before_they_expire(tmp_path):
    path = tmp_path / "keys"
    path.write_text(keys_json(1, "2023-11-15T02:13:20Z"))  # four hours after the clock begins
    made, script = client(ok({"databases": []}), **{**DLF, "dlf.token-path": str(path)})
    for at, number in ((0, 2), (10_799, 3), (10_801, 4)):
        made.env.clock.seconds = at
        made.get(made.path("databases"), DatabasePage)
        path.write_text(keys_json(number, "2030-01-01T00:00:00Z"))
    shown = [headers["Authorization"].partition("Credential=")[2].partition("/")[0] for _, _, headers, _ in script.sent]
    assert shown == ["id1", "id1", "id3"]


def test_a_key_file_that_is_half_written_is_read_again_and_never_quoted(tmp_path):
    path = tmp_path / "keys"
    path.write_text('{"AccessKeyId":"id","AccessKeySecret":"sesame')
    made, _ = client(ok({"databases": []}), **{**DLF, "dlf.token-path": str(path)})
    with pytest.raises(StorageError, match="contains no DLF keys") as caught:
        made.get(made.path("databases"), DatabasePage)
    assert made.env.clock.waits == [1.0, 2.0, 3.0, 4.0]
    assert "sesame" not in str(caught.value) and caught.value.__cause__ is None


def test_keys_come_from_the_role_of_the_machine():
    answers = (Answer(200, {}, b"role\n"), Answer(200, {}, keys_json(7, "2030-01-01T00:00:00Z").encode()), ok({"databases": []}))
    made, script = client(*answers, **{**DLF, "dlf.token-loader": "ecs"})
    made.get(made.path("databases"), DatabasePage)
    begin = "http://100.100.100.200/latest/meta-data/Ram/security-credentials/"
    assert [url for _, url, _, _ in script.sent[:2]] == [begin, f"{begin}role"]
    assert "Credential=id7/" in script.sent[2][2]["Authorization"]


# -- retries and errors -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked, waited", [("3", 3.0), ("0", 1.0), ("soon", 1.0), ("99999", 600.0), ("Tue, 14 Nov 2023 22:13:27 GMT", 7.0), (None, 1.0)])
def test_a_request_to_a_busy_server_is_repeated_after_the_time_it_requests(asked, waited):
    made, script = client(no(503, {"retry-after": asked} if asked else {}), no(429), ok({"databases": ["d"]}))
    assert made.get(made.path("databases"), DatabasePage).databases == ("d",)
    assert made.env.clock.waits[0] == pytest.approx(waited, rel=0.1) and 2.0 <= made.env.clock.waits[1] < 2.2
    assert len(script.sent) == 3


def test_requests_to_a_busy_server_are_bounded():
    made, script = client(no(503, message="later"))
    with pytest.raises(StorageError, match="HTTP 503: later") as caught:
        made.get(made.path("databases"), DatabasePage)
    assert caught.value.transient and len(script.sent) == 6


def test_a_read_with_a_lost_answer_is_repeated():
    made, script = client(Unanswered("reset"), Unanswered("cut"), ok({"databases": []}))
    made.get(made.path("databases"), DatabasePage)
    assert len(script.sent) == 3
    made, script = client(Unanswered("reset"))
    with pytest.raises(StorageUnknownError, match="it is not known whether"):
        made.post(made.path("databases"), {"name": "d"})
    assert len(script.sent) == 1


def test_a_request_that_timed_out_is_not_repeated():
    made, script = client(Unanswered("Read timed out", slow=True))
    with pytest.raises(StorageError, match="timed out"):
        made.get(made.path("databases"), DatabasePage)
    with pytest.raises(StorageUnknownError, match="timed out"):
        made.delete(made.path("databases", "d"))
    assert len(script.sent) == 2


def test_a_repeated_deletion_succeeds():
    made, script = client(Unanswered("reset"), no(404, resourceType="TABLE", code=404))
    made.delete(made.path("databases", "d"))
    assert len(script.sent) == 2
    with pytest.raises(RestRefusedError):
        client(no(404, code=404))[0].delete("/x")


def test_an_unreachable_server_is_an_error():
    made, script = client(Unsent("connection refused"))
    with pytest.raises(StorageError, match="connection refused") as caught:
        made.post(made.path("databases"), {})
    assert not isinstance(caught.value, StorageUnknownError) and len(script.sent) == 1


@pytest.mark.parametrize("status, body, error, match", [
    (400, {"message": "bad"}, UsageError, "bad"), (401, {}, RestRefusedError, "does not accept these credentials"),
    (403, {"message": "no", "resourceType": "TABLE"}, RestRefusedError, "do not permit"), (404, {"message": "x", "resourceType": "TABLE"}, RestRefusedError, "404"),
    (404, {"message": "x", "code": 501}, UnsupportedError, "HTTP 501"), (405, {}, RestRefusedError, "HTTP 405"), (409, {}, RestRefusedError, "HTTP 409"),
    (302, {}, RestRefusedError, "redirects are not followed"), (500, {"message": "boom"}, StorageUnknownError, "boom"), (502, {}, StorageUnknownError, "502"),
    (500, {"message": "password=sesame Bearer sesame2 http://u:sesame3@h/?x=sesame4"}, StorageUnknownError, "HTTP 500"),
])  # fmt: skip
def test_errors_by_status(status, body, error, match):
    made, _ = client(no(status, {"x-request-id": "r1"}, **body))
    with pytest.raises(error, match=match) as caught:
        made.post(made.path("databases"), {})
    assert type(caught.value) is error and "request r1" in str(caught.value) and "sesame" not in str(caught.value)


def test_an_undecodable_answer_is_not_quoted():
    made, _ = client(Answer(200, {}, b'{"name": 1, "x": "sesame"}'))
    with pytest.raises(StorageError, match="not a DatabaseAnswer") as caught:
        made.get(made.path("databases", "d"), DatabaseAnswer)
    assert "sesame" not in str(caught.value) and caught.value.__cause__ is None and caught.value.__suppress_context__


def test_a_page_returned_twice_is_an_error():
    made, script = client(ok({"databases": ["a"], "nextPageToken": "a"}), ok({"databases": ["b"], "nextPageToken": None}))
    assert [page.items() for page in made.pages(made.path("databases"), DatabasePage)] == [("a",), ("b",)]
    assert script.sent[1][1].endswith("?pageToken=a")
    made, _ = client(ok({"databases": ["a"], "nextPageToken": "a"}))
    with pytest.raises(StorageError, match="same page"):
        list(made.pages(made.path("databases"), DatabasePage))


# -- secrets ------------------------------------------------------------------------------------------------------------


def test_secrets_are_neither_shown_nor_pickled(caplog):
    caplog.set_level(logging.DEBUG)
    made, _ = client(no(401, message=f"token {TOKEN} unknown"), merged={"prefix": "p", "fs.oss.accessKeySecret": "sesame-oss"}, **{"header.X-Key": "sesame-header"})
    with pytest.raises(RestRefusedError) as caught:
        made.get(made.path("databases"), DatabasePage)
    seen = [str(caught.value), repr(caught.value), repr(made), pickle.dumps(made).decode("latin1"), pickle.dumps(caught.value).decode("latin1"), caplog.text]
    assert not any("sesame" in text for text in seen)


def test_an_unpickled_client_explains_that_pickles_contain_no_token():
    made, _ = client(ok({"databases": []}))
    there = pickle.loads(pickle.dumps(made))
    with pytest.raises(UsageError, match="pickles contain no tokens"):
        there.get(there.path("databases"), DatabasePage)


# -- over a socket ------------------------------------------------------------------------------------------------------


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):  # noqa: N802
        if self.path == "/slow":
            self.server.waits.wait(30)
        if self.path in ("/slow", "/reset"):
            self.connection.close()
            self.close_connection = True
            return
        self.send_response(302 if self.path == "/away" else 200)
        self.send_header("Location", "http://elsewhere.invalid/")
        self.send_header("Content-Length", "10")
        self.end_headers()
        self.wfile.write(b"12345" if self.path == "/cut" else b"1234567890")
        self.close_connection = self.path == "/cut"

    def log_message(self, *args):
        """Nothing."""


@pytest.fixture
def address():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.waits = threading.Event()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.waits.set()
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_forked_process_opens_its_own_connections(address):
    class Processes:
        number = 1

        def process(self):
            return self.number

    ids = Processes()
    sender = HttpSender(ids=ids)
    assert sender.send("GET", f"{address}/ok", {}, None).status == 200
    before = sender._connections()
    assert sender._connections() is before
    ids.number = 2
    assert sender._connections() is not before
    assert sender.send("GET", f"{address}/ok", {}, None).status == 200


def test_a_request_is_answered_unsent_or_unanswered(address):
    sender = HttpSender()
    assert sender.send("GET", f"{address}/ok", {}, None).body == b"1234567890"
    assert sender.send("GET", f"{address}/away", {}, None).status == 302
    assert isinstance(sender.send("GET", f"{address}/reset", {}, None), Unanswered)
    assert isinstance(sender.send("GET", f"{address}/cut", {}, None), Unanswered)
    assert sender.send("GET", f"{address}/ok", {}, None).status == 200
    assert isinstance(sender.send("GET", "http://127.0.0.1:1/", {}, None), Unsent)
    assert HttpSender(timeout_seconds=0.05).send("GET", f"{address}/slow", {}, None).slow
    assert repr(sender.send("GET", f"{address}/ok", {}, None)) == "Answer(200, 10 bytes)"
