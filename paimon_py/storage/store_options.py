"""Names of the options of stores: which are used, which tune Java's clients, which are probably misspelled. Pure.

Source: Java `S3FileIO`, `GSFileIO`, `AzureFileIO`, `OSSFileIO` (prefixes, mirrored keys); Hadoop's connectors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from paimon_py.errors import OptionError
from paimon_py.spec.option_names import nearest


class Family(msgspec.Struct, frozen=True):
    """The options of one kind of store.

    Attributes:
        prefixes: how their names begin; what follows means the same behind each.
        used: names behind the prefix, as they are usually spelled; `-` and `.` mean the same.
        tuning: names behind the prefix that change nothing of what is read and written; they pass without effect.
    """

    title: str
    prefixes: tuple[str, ...]
    used: frozenset[str]
    tuning: re.Pattern[str]

    def spelled(self, prefix: str) -> frozenset[str]:
        """The full names behind a prefix."""
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
        r"|prefetch|performance|optimized\.|create\.|signer\.type|signing\.algorithm|ssl\.|executor\.|multiobjectdelete|analytics"
    ),
)  # fmt: skip
GCS = Family(
    "Google Cloud Storage",
    ("fs.gs.", "gs."),
    frozenset(("auth.type", "auth.service.account.json.keyfile", "project.id", "storage.root.url")),
    re.compile(
        r"impl|working\.dir|block\.size|inputstream\.|outputstream\.|http\.|implicit\.dir|glob\.|status\.parallel|performance\."
        r"|batch\.|max\.|rewrite\.|reported\.|client\.type|grpc\.|copy\.|list\.|marker\.|lazy\.|tracelog|cloud\.logging"
    ),
)
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
)  # fmt: skip
FAMILIES = (S3, GCS, AZURE, OSS)
_BARE_OSS = "oss."
_OF_ACCOUNT = re.compile(r"\.[^.]+\.(?:blob|dfs)\.[a-z0-9.]+$")


def check_store_options(options: Mapping[str, str]) -> None:
    """Refuse names below the prefix of a store that nobody reads: the setting would be missing without a word.

    Tuning of Java's clients passes without effect, and so does what names no store.

    Raises: OptionError that says the option that was probably meant, or which there are.
    """
    for name in options:
        if name.startswith(_BARE_OSS):
            meant = OSS.prefixes[0] + name.removeprefix(_BARE_OSS)
            raise OptionError(f"there is no option {name!r}; did you mean {meant!r}?", option=name)
        for family in FAMILIES:
            prefix = next((each for each in family.prefixes if name.startswith(each)), None)
            if prefix is not None:
                _check(name, prefix, family)
                break


def _check(name: str, prefix: str, family: Family) -> None:
    rest = name.removeprefix(prefix)
    if family is AZURE:
        rest = _OF_ACCOUNT.sub("", rest)
    plain = _plain(rest)
    if any(_plain(used) == plain for used in family.used):
        return
    meant = nearest(prefix + rest, family.spelled(prefix)) or _with_same_letters(rest, prefix, family)
    if meant is not None:
        raise OptionError(f"there is no option {name!r}; did you mean {meant!r}?", option=name)
    if family.tuning.match(plain):
        return
    known = ", ".join(sorted(prefix + used for used in family.used))
    raise OptionError(
        f"paimon_py does not know the option {name!r}, and without it something else may happen than was asked for;"
        f" for {family.title} there are {known}",
        option=name,
    )


def _with_same_letters(rest: str, prefix: str, family: Family) -> str | None:
    """The option that is spelled with other signs between its words (`accessKey`)."""
    letters = re.sub(r"[^a-z0-9]", "", rest.lower())
    same = (used for used in sorted(family.used) if re.sub(r"[^a-z0-9]", "", used.lower()) == letters)
    return next((prefix + used for used in same), None)


def _plain(name: str) -> str:
    return name.replace("-", ".").lower()
