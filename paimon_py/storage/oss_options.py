"""Converts Paimon's options for OSS to settings of its client. Pure.

Source: Java `OSSFileIO`, release 2.0; hadoop-aliyun.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from paimon_py.errors import OptionError
from paimon_py.spec.redact import shown_url

PREFIX = "fs.oss."
FORBID = "x-oss-forbid-overwrite"
CLOUD = ".aliyuncs.com"

_ENCRYPTION = {
    "server-side-encryption": "x-oss-server-side-encryption",
    "server-side-encryption-key-id": "x-oss-server-side-encryption-key-id",
    "server-side-data-encryption": "x-oss-server-side-data-encryption",
}


class OssSettings(msgspec.Struct, frozen=True):
    """The endpoint of requests and what they contain. `credentials`: key, secret and token, or empty."""

    endpoint: str
    credentials: tuple[str, ...] = ()
    headers: Mapping[str, str] = {}
    is_cname: bool = True
    is_path_style: bool = False

    def __repr__(self) -> str:
        return f"OssSettings({shown_url(self.endpoint)!r})"

    @classmethod
    def of(cls, options: Mapping[str, str]) -> OssSettings:
        """The settings in the options of a catalog or table.

        Raises: OptionError for no endpoint, half of a key pair, or a value that is not allowed.
        """
        size = len(PREFIX)
        given = {
            name[size:].lower(): value.strip()
            for name, value in options.items()
            if name.lower().startswith(PREFIX) and value.strip()
        }
        endpoint = given.get("endpoint")
        if endpoint is None:
            raise OptionError(
                "oss:// needs the option fs.oss.endpoint, such as 'oss-cn-hangzhou.aliyuncs.com'",
                option="fs.oss.endpoint",
            )
        if ("accesskeyid" in given) != ("accesskeysecret" in given):
            text = "options fs.oss.accessKeyId and fs.oss.accessKeySecret must be set together"
            raise OptionError(text, option="fs.oss.accessKeySecret")
        if "://" not in endpoint:
            is_secure = _flag(given, "connection.secure.enabled", default=True)
            endpoint = f"{'https' if is_secure else 'http'}://{endpoint}"
        names = ("accesskeyid", "accesskeysecret", "securitytoken")
        headers = {header: given[name] for name, header in _ENCRYPTION.items() if name in given}
        if "server-side-encryption-algorithm" in given:
            headers.setdefault(_ENCRYPTION["server-side-encryption"], given["server-side-encryption-algorithm"])
        return cls(
            endpoint=endpoint,
            credentials=tuple(given.get(name, "") for name in names) if "accesskeyid" in given else (),
            headers=headers,
            is_cname=_flag(given, "cname.enabled", default=True),
            is_path_style=_flag(given, "sld.enabled", default=False),
        )

    def harmless(self) -> OssSettings:
        """The settings without credentials."""
        return msgspec.structs.replace(self, endpoint=shown_url(self.endpoint), credentials=())


def _flag(given: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = given.get(name, str(default)).lower()
    if text not in ("true", "false"):
        option = PREFIX + name
        raise OptionError(f"option {option} must be true or false, not {text!r}", option=option, value=text)
    return text == "true"
