"""Converts Paimon's options for object stores to arguments of the fsspec packages. Pure.

Source: Java `S3FileIO`, `GSFileIO`, `AzureFileIO` (prefixes and mirrored keys); Paimon docs, "Filesystems".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from paimon_py.errors import OptionError
from paimon_py.spec.options import parse_duration
from paimon_py.spec.redact import shown_url

SECRET_ARGUMENTS = frozenset(
    (
        "key", "secret", "token", "password", "account_key", "sas_token", "connection_string", "client_secret",
        "credential",
    )
)  # fmt: skip
"""fsspec arguments that never appear in messages or pickles."""

_PART_LENGTH = 12
_HARMLESS_ARGUMENTS = frozenset(
    (
        "anon", "account_host", "account_name", "client_id", "config_kwargs", "host", "port", "profile", "project",
        "protocol", "requester_pays", "s3_additional_kwargs", "tenant_id",
    )
)
_HARMLESS_TOKENS = ("anon", "google_default", "cloud")
_HARMLESS_OF_ROLE = ("arn", "session.name", "session.duration", "sts.endpoint.region")
_HARMLESS_OF_CLIENT = ("endpoint_url", "region_name")

_AZURE_IDENTITIES = ("MsiTokenProvider", "WorkloadIdentityTokenProvider")
_AZURE_KINDS = {
    "account.auth.type": ("SharedKey", "OAuth", "SAS"),
    "account.oauth.provider.type": ("ClientCredsTokenProvider", *_AZURE_IDENTITIES),
}
_AZURE_ACCOUNT = re.compile(r"^(?P<key>.+)\.(?P<account>[^.]+)\.(?:blob|dfs)\.(?P<suffix>[a-z0-9.]+)$")
_AZURE_URL = re.compile(r"[a-z]+://[^@/]+@(?P<account>[^./]+)\.(?:blob|dfs)\.(?P<suffix>[A-Za-z0-9.-]+)(?:/|$)")
_AZURE_CLOUD = "core.windows.net"
_AZURE_LOGIN = "https://login.microsoftonline.com"
_AZURE_SECRETS = {
    "account.key": "account_key", "sas.fixed.token": "sas_token", "account.oauth2.client.id": "client_id",
    "account.oauth2.client.secret": "client_secret",
}  # fmt: skip
_TENANT = re.compile(r"^https://(?:[^/]*@)?login\.microsoftonline\.com/(?P<tenant>[^/]+)/oauth2")


def harmless_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of an fsspec file system that are known to be no secrets; URLs without user and query."""
    found = {name: value for name, value in arguments.items() if name in _HARMLESS_ARGUMENTS}
    if "endpoint_url" in arguments:
        found["endpoint_url"] = shown_url(str(arguments["endpoint_url"]))
    client = arguments.get("client_kwargs", {})
    if "role" in arguments:
        found["role"] = {name: text for name, text in arguments["role"].items() if name in _HARMLESS_OF_ROLE}
    known = {name: shown_url(str(client[name])) for name in _HARMLESS_OF_CLIENT if name in client}
    if known:
        found["client_kwargs"] = known
    if arguments.get("token") in _HARMLESS_TOKENS:
        found["token"] = arguments["token"]
    return found


def secret_texts(arguments: Mapping[str, Any]) -> frozenset[str]:
    """The secrets in the arguments of an fsspec file system: whole, and in recognisable parts."""
    found: set[str] = set()
    for name in SECRET_ARGUMENTS & arguments.keys():
        value = str(arguments[name])
        if value not in _HARMLESS_TOKENS:
            found.update((value, *_parts(value)))
    endpoints = (arguments.get("endpoint_url"), arguments.get("client_kwargs", {}).get("endpoint_url"))
    for url in endpoints:
        authority = str(url or "").partition("://")[2].rpartition("@")[0]
        found.update(part for part in (authority, *authority.split(":"), unquote(authority.partition(":")[2])) if part)
    return frozenset(found)


def _parts(secret: str) -> Iterator[str]:
    """The lines and quoted strings of a secret, such as a key file, that are long enough to be recognised."""
    for part in re.split(r"[\r\n\"']+|\\n|;", secret):
        if len(part.strip()) >= _PART_LENGTH:
            yield part.strip()
            for mark in ("=", "://"):
                if len(tail := part.partition(mark)[2].strip()) >= _PART_LENGTH:
                    yield tail
            if "://" in part and len(path := part.partition("://")[2].partition("/")[2].strip()) >= _PART_LENGTH:
                yield path


def fsspec_arguments(scheme: str, options: Mapping[str, str], root: str = "") -> dict[str, object]:
    """Arguments of the fsspec file system for a scheme; empty if nothing is configured. `root`: a URL of the store.

    Raises:
        OptionError: half of a key pair, or a value that is not allowed.
    """
    translate = _TRANSLATE.get(scheme)
    return translate(options, root) if translate else {}


def _with_prefixes(options: Mapping[str, str], prefixes: tuple[str, ...]) -> dict[str, str]:
    """Options below any of the prefixes, first prefix first, with `-` spelled as `.` (`access-key` is `access.key`)."""
    found: dict[str, str] = {}
    for prefix in prefixes:
        for name, value in options.items():
            if name.startswith(prefix) and value.strip():
                found.setdefault(name[len(prefix) :].replace("-", "."), value.strip())
    return found


def _s3(options: Mapping[str, str], _root: str) -> dict[str, object]:
    given = _with_prefixes(options, ("s3.", "s3a.", "fs.s3a."))
    arguments: dict[str, object] = {}
    if ("access.key" in given) != ("secret.key" in given):
        raise OptionError("options s3.access-key and s3.secret-key must be set together", option="s3.secret-key")
    if "access.key" in given:
        arguments.update(key=given["access.key"], secret=given["secret.key"])
    if "session.token" in given:
        arguments["token"] = given["session.token"]
    if "auth.profile.name" in given:
        arguments["profile"] = given["auth.profile.name"]
    if _s3_provider(given) == _ANONYMOUS:
        arguments["anon"] = True
    role = _s3_role(given)
    if role:
        arguments["role"] = role
    client: dict[str, object] = {}
    if "endpoint" in given:
        encrypted = _boolean(given, "connection.ssl.enabled", default=True, option="s3.connection.ssl.enabled")
        client["endpoint_url"] = _with_scheme(given["endpoint"], encrypted=encrypted)
    region = given.get("region") or given.get("endpoint.region")
    if region:
        client["region_name"] = region
    if client:
        arguments["client_kwargs"] = client
    if _boolean(given, "path.style.access", default=False, option="s3.path.style.access"):
        arguments["config_kwargs"] = {"s3": {"addressing_style": "path"}}
    if _boolean(given, "requester.pays.enabled", default=False, option="s3.requester.pays.enabled"):
        arguments["requester_pays"] = True
    encryption = _s3_encryption(given)
    if encryption:
        arguments["s3_additional_kwargs"] = encryption
    return arguments


def _s3_provider(given: Mapping[str, str]) -> str:
    """The class of the first credentials provider that the options name; empty if they name none.

    Raises: OptionError for a provider that has no equivalent here.
    """
    option = "fs.s3a.aws.credentials.provider"
    names = [text.strip().rpartition(".")[2] for text in given.get("aws.credentials.provider", "").split(",")]
    for name in filter(None, names):
        if name not in _PROVIDERS:
            known = ", ".join(sorted(_PROVIDERS))
            raise OptionError(f"option {option} cannot be {name!r}; allowed: {known}", option=option, value=name)
        missing = _PROVIDERS[name] - given.keys()
        if missing:
            needed = " and ".join(f"s3.{each}" for each in sorted(missing))
            raise OptionError(f"option {option} = {name} needs {needed}", option=option, value=name)
    return names[0]


def _s3_role(given: Mapping[str, str]) -> dict[str, str]:
    """The role to assume, and for how long."""
    role = {name: given[_ROLE + name] for name in _ROLE_NAMES if _ROLE + name in given}
    if role and "arn" not in role:
        raise OptionError("options s3.assumed.role.… need s3.assumed.role.arn", option="s3.assumed.role.arn")
    duration = role.get("session.duration")
    if duration is not None and parse_duration(duration) is None:
        option = "s3.assumed.role.session.duration"
        raise OptionError(f"option {option} must be a duration such as '30m'", option=option, value=duration)
    return role


def _s3_encryption(given: Mapping[str, str]) -> dict[str, str]:
    algorithm = given.get("encryption.algorithm") or given.get("server.side.encryption.algorithm")
    if algorithm is None:
        return {}
    if algorithm.upper() not in _ENCRYPTIONS:
        known = ", ".join(_ENCRYPTIONS)
        raise OptionError(
            f"option s3.encryption.algorithm must be one of {known}, not {algorithm!r}: others need a key with each"
            " request, which is not supported",
            option="s3.encryption.algorithm",
            value=algorithm,
        )
    found = {"ServerSideEncryption": _ENCRYPTIONS[algorithm.upper()]}
    key = given.get("encryption.key") or given.get("server.side.encryption.key")
    if key and algorithm.upper() != "AES256":
        found["SSEKMSKeyId"] = key
    return found


_ANONYMOUS = "AnonymousAWSCredentialsProvider"
_KEYS = frozenset(("access.key", "secret.key"))
_PROVIDERS: dict[str, frozenset[str]] = {
    _ANONYMOUS: frozenset(),
    "SimpleAWSCredentialsProvider": _KEYS,
    "TemporaryAWSCredentialsProvider": _KEYS | {"session.token"},
    "AssumedRoleCredentialProvider": frozenset(("assumed.role.arn",)),
    **dict.fromkeys(
        ("DefaultAWSCredentialsProviderChain", "DefaultCredentialsProvider", "EnvironmentVariableCredentialsProvider",
         "EC2ContainerCredentialsProviderWrapper", "IAMInstanceCredentialsProvider",
         "InstanceProfileCredentialsProvider", "ContainerCredentialsProvider", "ProfileCredentialsProvider",
         "ProfileAWSCredentialsProvider",
         "WebIdentityTokenCredentialsProvider", "WebIdentityTokenFileCredentialsProvider"),
        frozenset[str](),
    ),
}  # fmt: skip
"""Providers of Hadoop and AWS by class, with the options they need; those without are part of the cloud's chain."""

_ROLE = "assumed.role."
_ROLE_NAMES = ("arn", "session.name", "session.duration", "external.id", "sts.endpoint", "sts.endpoint.region")
_ENCRYPTIONS = {"AES256": "AES256", "SSE-KMS": "aws:kms", "DSSE-KMS": "aws:kms:dsse"}


def _gcs(options: Mapping[str, str], _root: str) -> dict[str, object]:
    given = _with_prefixes(options, ("gs.", "fs.gs."))
    arguments: dict[str, object] = {}
    kinds = {"UNAUTHENTICATED": "anon", "APPLICATION_DEFAULT": "google_default", "COMPUTE_ENGINE": "cloud"}
    kind = given.get("auth.type", "").upper()
    if "auth.service.account.json.keyfile" in given:
        arguments["token"] = given["auth.service.account.json.keyfile"]
    elif kind in kinds:
        arguments["token"] = kinds[kind]
    elif kind:
        raise OptionError(f"option fs.gs.auth.type cannot be {kind!r}", option="fs.gs.auth.type", value=kind)
    if "project.id" in given:
        arguments["project"] = given["project.id"]
    if "storage.root.url" in given:
        arguments["endpoint_url"] = given["storage.root.url"].rstrip("/")
    return arguments


def _azure(options: Mapping[str, str], root: str) -> dict[str, object]:
    """Options that end with an account apply to that account only, and take precedence over those without."""
    at = _AZURE_URL.match(root)
    account, suffix = (at.group("account"), at.group("suffix")) if at else (None, None)
    own: dict[str, str] = {}
    for name, value in _with_prefixes(options, ("azure.", "fs.azure.", "fs.wasb.")).items():
        match = _AZURE_ACCOUNT.match(name)
        if match is None:
            own.setdefault(name, value)
            continue
        named = match.group("account")
        if at is None and account not in (None, named):
            raise OptionError(
                f"options name the accounts {account!r} and {named!r}, and the URL does not say which: write"
                " abfss://container@account.dfs.core.windows.net/path",
                option=f"fs.azure.{name}",
            )
        if account in (None, named):
            account, suffix = named, suffix or match.group("suffix")
            own[match.group("key")] = value
    arguments = _azure_credentials(own)
    if account is not None and (own or suffix != _AZURE_CLOUD):
        arguments["account_name"] = account
    if account is not None and suffix != _AZURE_CLOUD:
        arguments["account_host"] = f"{account}.blob.{suffix}"
    return arguments


def _azure_credentials(given: Mapping[str, str]) -> dict[str, object]:
    arguments: dict[str, object] = {}
    for key, value in given.items():
        if key in _AZURE_SECRETS:
            arguments[_AZURE_SECRETS[key]] = value
        elif key in _AZURE_KINDS:
            allowed = _AZURE_KINDS[key]
            if value.rpartition(".")[2] not in allowed:
                option, known = f"fs.azure.{key}", ", ".join(allowed)
                text = f"option {option} cannot be {value!r}; allowed: {known}"
                raise OptionError(text, option=option, value=value)
            if value.endswith(_AZURE_IDENTITIES):
                arguments["anon"] = False
        elif key == "account.oauth2.client.endpoint":
            arguments["tenant_id"] = _azure_tenant(value)
    return arguments


def _azure_tenant(endpoint: str) -> str:
    match = _TENANT.match(endpoint)
    if match is None:
        option = "fs.azure.account.oauth2.client.endpoint"
        raise OptionError(
            f"option {option} must be {_AZURE_LOGIN}/<tenant>/oauth2/token; for another login leave the application out"
            " of the options and name it in the environment (AZURE_AUTHORITY_HOST, AZURE_TENANT_ID, AZURE_CLIENT_ID,"
            " AZURE_CLIENT_SECRET), with fs.azure.account.oauth.provider.type = MsiTokenProvider",
            option=option,
        )
    return match.group("tenant")


_TRANSLATE: dict[str, Callable[[Mapping[str, str], str], dict[str, object]]] = {
    "s3": _s3,
    "gs": _gcs,
    "abfs": _azure,
    "abfss": _azure,
    "az": _azure,
}


def _boolean(given: Mapping[str, str], name: str, *, default: bool, option: str) -> bool:
    text = given.get(name, str(default)).lower()
    if text not in ("true", "false"):
        raise OptionError(f"option {option} must be true or false, not {text!r}", option=option, value=text)
    return text == "true"


def _with_scheme(endpoint: str, *, encrypted: bool) -> str:
    if "://" in endpoint:
        return endpoint
    return f"{'https' if encrypted else 'http'}://{endpoint}"
