"""Redacts secrets: shows options known to be harmless, and URLs without user information and query. Pure.

Strings (`repr`, errors, warnings, logs, explanations) and pickles get options and URLs from this module, so that values
not known to be harmless stay in the process.

Source: docs/security.md, "Secrets"; docs/decisions/0020-what-is-touched-and-shown.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from paimon_py.spec.option_names import FIELD_OPTIONS, FIELDS_PREFIX, known_names
from paimon_py.spec.option_rows import ROWS
from paimon_py.spec.option_rows.kinds import MAP

HIDDEN = "***"
"""The placeholder of a hidden value."""

_URL = re.compile(r"((?:[A-Za-z][A-Za-z0-9+.\-]*:)*[A-Za-z][A-Za-z0-9+.\-]*):/{2,}")
_URL_IN_TEXT = re.compile(_URL.pattern + r"[^\s'\"<>]+")
_SIGNING = re.compile(
    r"(?i)\b((?:authorization|x-[a-z-]*token)['\"]?\s*[=:]\s*['\"]?|[\w-]*(?:signature|credential|sig|password|secret|token)[=:]|"
    r"(?:bearer|sharedkey) +)(?:(?:bearer|basic|sharedkey) +)?[^\s'\",;&]+"
)
_CONTAINERS = frozenset(("abfs", "abfss", "az", "wasb", "wasbs"))
"""Schemes of Azure, where the part before `@` is a container."""

_STORE_PREFIXES = ("s3.", "s3a.", "fs.s3a.", "gs.", "fs.gs.", "azure.", "fs.azure.")
_OF_STORES = frozenset((
    "endpoint", "endpoint.region", "region", "path.style.access", "connection.ssl.enabled", "aws.credentials.provider",
    "auth.type", "project.id", "storage.root.url",
))  # fmt: skip
_OF_AZURE = ("account.oauth2.client.id", "account.oauth2.client.endpoint")
_HADOOP_PREFIX = "hadoop."
_OF_HADOOP = re.compile(
    r"fs\.defaultFS|dfs\.nameservices|dfs\.(ha\.namenodes|namenode\.rpc-address)\..+"
    r"|dfs\.client\.(failover|block\.write|socket)[.-].+|dfs\.client\.use\.datanode\.hostname"
    r"|dfs\.data\.transfer\.protection|hadoop\.(security\.authentication|rpc\.protection)"
)
_OF_OSS = frozenset(
    "fs.oss." + name for name in ("cname.enabled", "connection.secure.enabled", "endpoint", "sld.enabled")
)
_OF_CATALOGS = _OF_OSS | frozenset((
    "metastore", "fs.local.fsync", "hadoop-conf-dir", "lock.enabled", "lock-check-max-sleep", "lock-acquire-timeout",
    "lock-key-max-length", "client-pool-size", "catalog-key", "sync-all-properties",
))  # fmt: skip
_TABLE_DEFAULT = "table-default."
_WITH_PARAMETERS = re.compile("param|sync-url")
_OF_FORMATS = ("parquet.", "orc.", "avro.")
_HIDING = re.compile("crypt|key|secret|token|password|credential|kms|mask")
_OF_INDEXES = "file-index."
_MAPS = tuple(row[0] + "." for row in ROWS if row[1] == MAP)


def shown_url(url: str) -> str:
    """A URL without user information, query and fragment; Azure containers and plain paths are kept."""
    match = _URL.match(url)
    if match is None:
        return url
    ends = [place for mark in "?#" if (place := url.find(mark)) >= 0]
    return without_user(url[: min(ends)] if ends else url)


def without_user(url: str) -> str:
    """A URL without its user information. If a password contains a slash, everything possible is removed."""
    match = _URL.match(url)
    if match is None or "@" not in url:
        return url
    rest = url[match.end() :]
    authority, slash, path = rest.partition("/")
    user, at, host = authority.rpartition("@")
    if at:
        is_container = match[1].lower() in _CONTAINERS and ":" not in user
        return url if is_container else f"{match[0]}{host}{slash}{path}"
    _, colon, port = authority.rpartition(":")
    return match[0] + rest.rpartition("@")[2] if colon and not port.isdecimal() else url


def shown_text(text: str) -> str:
    """A foreign string, such as a server's error: its URLs are shown as by `shown_url`, and signatures are hidden."""
    return _SIGNING.sub(rf"\1{HIDDEN}", _URL_IN_TEXT.sub(lambda match: shown_url(match[0]), text))


def harmless_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options that are known to be harmless; URLs in them are shown as by `shown_url`."""
    return {name: _shown_value(name, text) for name, text in options.items() if is_harmless(name)}


def shown_options(options: Mapping[str, str]) -> dict[str, str]:
    """All options, with `***` in place of each value that is not known to be harmless."""
    return {name: shown_option(name, text) for name, text in options.items()}


def shown_option(name: object, value: object) -> str:
    """The value of an option, `***` if it is not known to be harmless; accepts any type."""
    if not isinstance(name, str) or not isinstance(value, (str, int, float)) or not is_harmless(name):
        return HIDDEN
    return _shown_value(name, str(value))


def is_harmless(name: str) -> bool:
    """Whether an option of a table, a catalog or a store is known, by its name, to contain no secret."""
    if name.startswith(_TABLE_DEFAULT):
        return _is_of_table(name.removeprefix(_TABLE_DEFAULT))
    return _is_of_table(name) or name in _OF_CATALOGS or _is_of_store(name)


def is_harmless_hadoop(name: str) -> bool:
    """Whether a Hadoop setting is known, by its name, to contain no secret."""
    return _OF_HADOOP.fullmatch(name) is not None


def _shown_value(name: str, text: str) -> str:
    if "://" in text:
        return ",".join(map(shown_url, text.split(",")))
    return shown_url(f"x://{text}")[4:] if name.endswith("endpoint") else text


def _is_of_table(name: str) -> bool:
    if name in known_names():
        return _WITH_PARAMETERS.search(name) is None
    if name.startswith(FIELDS_PREFIX):
        return name.endswith(tuple("." + option for option in FIELD_OPTIONS))
    if name.startswith(_OF_FORMATS):
        return _HIDING.search(name.partition("#")[0].lower()) is None
    return name.startswith((_OF_INDEXES, *_MAPS))


def _is_of_store(name: str) -> bool:
    if name.startswith(_HADOOP_PREFIX):
        return is_harmless_hadoop(name.removeprefix(_HADOOP_PREFIX))
    for prefix in _STORE_PREFIXES:
        if name.startswith(prefix):
            rest = name.removeprefix(prefix).replace("-", ".")
            if rest in _OF_STORES or rest.startswith(_OF_AZURE):
                return True
    return False
