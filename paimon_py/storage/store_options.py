"""Option names of stores: those in use, tuning options of Java's clients, and likely misspellings. Pure.

Source: Java `S3FileIO`, `GSFileIO`, `AzureFileIO`, `OSSFileIO` (prefixes, mirrored keys); Hadoop's connectors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import msgspec

from paimon_py.errors import OptionError
from paimon_py.spec.option_names import nearest


def _with_dots(name: str) -> str:
    return name.replace("-", ".")


class Family(msgspec.Struct, frozen=True):
    """The options of one kind of store.

    Attributes:
        prefixes: the prefixes of their names; the same name has the same meaning after each.
        used: names after the prefix, in their usual spelling.
        tuning: names after the prefix that do not affect what is read and written; they are accepted without effect.
        aliases: other names after the prefix, with dots between the words, and the names in use that they mean.
        read: normalises a name; names with the same result are the same option.
    """

    title: str
    prefixes: tuple[str, ...]
    used: frozenset[str]
    tuning: re.Pattern[str]
    aliases: Mapping[str, str] = {}
    read: Callable[[str], str] = _with_dots

    def full_names(self, prefix: str) -> frozenset[str]:
        """The full names for a prefix."""
        return frozenset(prefix + name for name in self.used)


S3 = Family(
    "S3",
    ("fs.s3a.", "s3a.", "s3."),
    frozenset((
        "access-key", "secret-key", "session.token", "endpoint", "endpoint.region", "region", "path.style.access",
        "connection.ssl.enabled", "aws.credentials.provider", "auth.profile.name", "assumed.role.arn",
        "assumed.role.session.name", "assumed.role.session.duration", "assumed.role.external.id",
        "assumed.role.sts.endpoint", "assumed.role.sts.endpoint.region", "encryption.algorithm", "encryption.key",
        "server-side-encryption-algorithm", "server-side-encryption.key", "requester.pays.enabled",
    )),
    re.compile(
        r"threads\.|connection\.|multipart\.|fast\.upload|block\.size|buffer\.dir|readahead\.|experimental\.|committer\."
        r"|directory\.|retry\.|attempts\.|socket\.|max\.|paging\.|list\.|impl|user\.agent|change\.|etag\.|audit\.|vectored\."
        r"|prefetch|performance|optimized\.|create\.|signer\.type|signing\.algorithm|ssl\.channel|executor\.|multiobjectdelete|analytics"
    ),
    {
        "access.key.id": "access-key", "secret.access.key": "secret-key", "secret": "secret-key",
        "token": "session.token", "endpoint.url": "endpoint", "path.style": "path.style.access",
        "force.path.style": "path.style.access", "ssl.enabled": "connection.ssl.enabled",
        "profile": "auth.profile.name", "profile.name": "auth.profile.name",
        "auth.profile": "auth.profile.name", "role.arn": "assumed.role.arn", "aws.region": "region",
        "credentials.provider": "aws.credentials.provider", "requester.pays": "requester.pays.enabled",
        "sse": "encryption.algorithm", "encryption.kms.key": "encryption.key",
    },
)  # fmt: skip
GCS = Family(
    "Google Cloud Storage",
    ("fs.gs.", "gs."),
    frozenset(("auth.type", "auth.service.account.json.keyfile", "project.id", "storage.root.url")),
    re.compile(
        r"impl|working\.dir|block\.size|inputstream\.|outputstream\.|http\.|implicit\.dir|glob\.|status\.parallel|performance\."
        r"|batch\.|max\.|rewrite\.|reported\.|client\.type|grpc\.|copy\.|list\.|marker\.|lazy\.|tracelog|cloud\.logging"
    ),
    {
        "auth.service.account.keyfile": "auth.service.account.json.keyfile",
        "keyfile": "auth.service.account.json.keyfile",
        "auth.service.account.json": "auth.service.account.json.keyfile", "project": "project.id", "auth": "auth.type",
        "json.keyfile": "auth.service.account.json.keyfile", "endpoint": "storage.root.url",
    },
)  # fmt: skip
AZURE = Family(
    "Azure",
    ("fs.azure.", "fs.wasb.", "azure."),
    frozenset((
        "account.key", "sas.fixed.token", "account.auth.type", "account.oauth2.client.id",
        "account.oauth2.client.secret", "account.oauth2.client.endpoint", "account.oauth.provider.type",
    )),
    re.compile(
        r"io\.|read\.|write\.|readaheadqueue|block\.|enable\.|always\.use\.https|secure\.mode|user\.agent|tracingheader"
        r"|threads|identity|createremote|atomic\.|account\.hns|account\.throttling|metric|abfs\.|buffered\.|list\.|disable\."
    ),
    {
        "key": "account.key", "storage.account.key": "account.key", "sas": "sas.fixed.token",
        "sas.token": "sas.fixed.token", "account.oauth.provider": "account.oauth.provider.type",
    },
)  # fmt: skip
OSS = Family(
    "OSS",
    ("fs.oss.",),
    frozenset((
        "endpoint", "accessKeyId", "accessKeySecret", "securityToken", "connection.secure.enabled", "cname.enabled",
        "sld.enabled", "server-side-encryption", "server-side-encryption-key-id", "server-side-data-encryption",
        "server-side-encryption-algorithm",
    )),
    re.compile(
        r"impl|attempts\.|connection\.|multi|buffer\.|fast\.upload|paging\.|max\.|list\.|user\.agent|block\.|upload\."
        r"|copy\.|memory|core|download|async"
    ),
    {
        "secret": "accessKeySecret", "secretkey": "accessKeySecret", "token": "securityToken",
        "ststoken": "securityToken", "connection.secure": "connection.secure.enabled", "cname": "cname.enabled",
        "sld": "sld.enabled", "sse": "server-side-encryption",
    },
    str.lower,
)  # fmt: skip
KERBEROS = Family(
    "HDFS",
    ("security.kerberos.login.",),
    frozenset(("principal", "keytab", "use-ticket-cache")),
    re.compile("(?!)"),
    {"principle": "principal"},
    str,
)
FAMILIES = (S3, GCS, AZURE, OSS, KERBEROS)
_MISTAKEN = {
    **dict.fromkeys(("fs.s3.", "fs.s3n.", "s3n.", "aws.s3."), ("s3.", S3)),
    **dict.fromkeys(("fs.gcs.", "gcs.", "google.cloud."), ("fs.gs.", GCS)),
    **dict.fromkeys(("fs.abfs.", "abfs.", "fs.abfss.", "abfss.", "fs.wasbs.", "wasbs.", "wasb."), ("fs.azure.", AZURE)),
    **dict.fromkeys(("oss.", "aliyun.oss.", "fs.aliyun."), ("fs.oss.", OSS)),
    "security.kerberos.": ("security.kerberos.login.", KERBEROS),
}
"""Prefixes that other libraries use for the options of a store, and the supported ones."""

_OF_ENVIRONMENT = {
    "aws_access_key_id": "s3.access-key", "aws_secret_access_key": "s3.secret-key",
    "aws_session_token": "s3.session.token", "aws_endpoint_url": "s3.endpoint", "aws_region": "s3.region",
    "aws_default_region": "s3.region", "aws_profile": "s3.auth.profile.name",
    "google_application_credentials": "fs.gs.auth.service.account.json.keyfile",
    "azure_storage_account_key": "fs.azure.account.key", "azure_storage_sas_token": "fs.azure.sas.fixed.token",
    "oss_access_key_id": "fs.oss.accessKeyId", "oss_access_key_secret": "fs.oss.accessKeySecret",
}  # fmt: skip
"""Environment variables that are often given as options, and the options that are meant."""

_ALONE = frozenset(("hadoop-conf-dir",))
_LETTERS = {
    re.sub(r"[^a-z0-9]", "", full.lower()): full
    for prefix, family in (("s3.", S3), ("fs.gs.", GCS), ("fs.azure.", AZURE), ("fs.oss.", OSS))
    for full in family.full_names(prefix)
}
"""Options by their letters and digits alone, for names with other separators (`s3_access_key`)."""

_BARE_OSS = "oss."
_OF_ACCOUNT = re.compile(r"\.[^.]+\.(?:blob|dfs)\.[a-z0-9.]+$")


def check_store_options(options: Mapping[str, str]) -> None:
    """Refuse unknown names with the prefix of a store, which would otherwise be ignored silently.

    Tuning options of Java's clients, and names without the prefix of a store, are accepted without effect.

    Raises: OptionError with the option that was probably meant, or with the supported options.
    """
    for name in options:
        for family in FAMILIES:
            prefix = next((each for each in family.prefixes if name.startswith(each)), None)
            if prefix is not None:
                _check(name, prefix, family)
                break
        else:
            meant = _suggest_known_prefix(name)
            if meant is not None:
                raise OptionError(f"option {name!r} does not exist; did you mean {meant!r}?", option=name)


def _suggest_known_prefix(name: str) -> str | None:
    """The option that was probably meant by a name without the prefix of a store."""
    if name in _ALONE:
        return None
    lower = name.lower()
    letters = re.sub(r"[^a-z0-9]", "", lower)
    found = _OF_ENVIRONMENT.get(lower) or nearest(lower, _ALONE) or _LETTERS.get(letters)
    if found is not None:
        return found
    if lower.startswith(_BARE_OSS):
        return OSS.prefixes[0] + name[len(_BARE_OSS) :]
    prefixes = {**_MISTAKEN, **{prefix: (prefix, family) for family in FAMILIES for prefix in family.prefixes}}
    for begun, (prefix, family) in prefixes.items():
        if lower.startswith(begun):
            rest = _without_account(name[len(begun) :], family)
            found = _suggest(prefix, rest, family)
            if found is not None:
                return found
    return None


def _without_account(rest: str, family: Family) -> str:
    """The rest of a name after its prefix, without the account at the end of Azure's options."""
    return _OF_ACCOUNT.sub("", rest) if family is AZURE else rest


def _suggest(prefix: str, rest: str, family: Family) -> str | None:
    """The option that was probably meant."""
    alias = family.aliases.get(_with_dots(rest.lower().replace("_", ".")))
    return prefix + alias if alias else nearest(prefix + rest, family.full_names(prefix))


def _check(name: str, prefix: str, family: Family) -> None:
    rest = _without_account(name.removeprefix(prefix), family)
    read = family.read(rest)
    if any(family.read(used) == read for used in family.used):
        return
    meant = _suggest(prefix, rest, family)
    if meant is not None:
        raise OptionError(f"option {name!r} does not exist; did you mean {meant!r}?", option=name)
    if family.tuning.match(_with_dots(rest).lower()):
        return
    known = ", ".join(sorted(prefix + used for used in family.used))
    raise OptionError(
        f"unknown option {name!r}, which cannot be ignored safely; the options for {family.title} are {known}",
        option=name,
    )
