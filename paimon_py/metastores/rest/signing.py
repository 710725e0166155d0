"""Authentication headers: signatures of Alibaba Cloud's DLF for one request. Pure.

Source: Java `DLFDefaultSigner`, `DLFOpenApiSigner`, `DLFAuthProviderFactory`, main of August 2026.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import hmac
import re
from collections.abc import Mapping
from urllib.parse import unquote_plus

import msgspec

from paimon_py.errors import OptionError

DEFAULT = "default"
OPENAPI = "openapi"
ALGORITHMS = (DEFAULT, OPENAPI)

_JSON = "application/json"
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_REGION = re.compile(r"(?:pre-)?([a-z]+-[a-z]+(?:-\d+)?)")
_SIGNED = frozenset(
    ("content-md5", "content-type", "x-dlf-content-sha256", "x-dlf-date", "x-dlf-version", "x-dlf-security-token")
)


class HttpRequest(msgspec.Struct, frozen=True):
    """One request: the path as sent, the query with unencoded values, and the body as a string, "" if there is none."""

    method: str
    path: str
    query: Mapping[str, str] = {}
    body: str = ""


class AccessKeys(msgspec.Struct, frozen=True):
    """An access key, with a token if it is temporary. `repr` hides all of it."""

    access_key: str
    secret: str
    security_token: str | None = None
    expires_millis: int | None = None

    def __repr__(self) -> str:
        return "AccessKeys(***)"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("access keys are not pickled")


def region_in(uri: str) -> str:
    """The region in a server's address.

    Raises: OptionError
    """
    found = _REGION.search(uri)
    if found is None:
        raise OptionError("the server's address contains no region: set the option 'dlf.region'", option="dlf.region")
    return found.group(1)


def algorithm_for(uri: str) -> str:
    """The default signing algorithm for a server's address."""
    return OPENAPI if "dlfnext" in uri.lower() else DEFAULT


def host_in(uri: str) -> str:
    """The host in an address, with its port if given."""
    return re.sub(r"^https?://", "", uri, count=1).partition("/")[0]


def default_headers(request: HttpRequest, keys: AccessKeys, region: str, now_millis: int) -> dict[str, str]:
    """The headers that sign a request with DLF4-HMAC-SHA256. The body is signed by its MD5."""
    stamp = _utc(now_millis).strftime("%Y%m%dT%H%M%SZ")
    headers = {"x-dlf-date": stamp, "x-dlf-content-sha256": "UNSIGNED-PAYLOAD", "x-dlf-version": "v1"}
    if request.body:
        headers |= {"Content-Type": _JSON, "Content-MD5": _md5(request.body)}
    if keys.security_token is not None:
        headers["x-dlf-security-token"] = keys.security_token
    scope = f"{stamp[:8]}/{region}/DlfNext/aliyun_v4_request"
    digest = hashlib.sha256(_canonical(request, headers).encode()).hexdigest()
    key = f"aliyun_v4{keys.secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    text = "\n".join(("DLF4-HMAC-SHA256", stamp, scope, digest))
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    headers["Authorization"] = f"DLF4-HMAC-SHA256 Credential={keys.access_key}/{scope},Signature={signature}"
    return headers


def openapi_headers(request: HttpRequest, keys: AccessKeys, host: str, now_millis: int, nonce: str) -> dict[str, str]:
    """The headers that sign a request for Alibaba Cloud's OpenAPI (DlfNext/2026-01-18)."""
    headers = {
        "Date": _http_date(now_millis),
        "Accept": _JSON,
        "Host": host,
        "x-acs-signature-method": "HMAC-SHA1",
        "x-acs-signature-nonce": nonce,
        "x-acs-signature-version": "1.0",
        "x-acs-version": "2026-01-18",
    }
    if request.body:
        headers |= {"Content-MD5": _md5(request.body), "Content-Type": _JSON}
    if keys.security_token is not None:
        headers["x-acs-security-token"] = keys.security_token
    lines = [request.method, _JSON, headers.get("Content-MD5", ""), headers.get("Content-Type", ""), headers["Date"]]
    lines += sorted(f"{name}:{value.strip()}" for name, value in headers.items() if name.startswith("x-acs-"))
    lines.append(unquote_plus(request.path) + ("?" + _query(request) if request.query else ""))
    signature = hmac.digest(keys.secret.encode(), "\n".join(lines).encode(), "sha1")
    headers["Authorization"] = f"acs {keys.access_key}:{base64.b64encode(signature).decode()}"
    return headers


def _canonical(request: HttpRequest, headers: Mapping[str, str]) -> str:
    signed = sorted((name.lower(), text.strip()) for name, text in headers.items() if name.lower() in _SIGNED)
    query = "&".join(
        name.strip() + (f"={text.strip()}" if text else "") for name, text in sorted(request.query.items())
    )
    lines = [request.method, request.path, query, *(f"{name}:{text}" for name, text in signed)]
    return "\n".join([*lines, "UNSIGNED-PAYLOAD"])


def _query(request: HttpRequest) -> str:
    return "&".join(name + (f"={unquote_plus(text)}" if text else "") for name, text in sorted(request.query.items()))


def _md5(text: str) -> str:
    return base64.b64encode(hashlib.md5(text.encode(), usedforsecurity=False).digest()).decode()


def _utc(millis: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(millis // 1000, datetime.timezone.utc)


def _http_date(millis: int) -> str:
    """A time in RFC 1123 format, in English whatever the locale."""
    at = _utc(millis)
    return f"{_DAYS[at.weekday()]}, {at.day:02} {_MONTHS[at.month - 1]} {at.year:04} {at:%H:%M:%S} GMT"
