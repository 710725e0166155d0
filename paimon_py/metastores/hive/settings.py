"""The options of a Hive catalog as values; refuses unsupported options.

Source: Java `HiveCatalogOptions`, `CatalogOptions`, `HiveCatalog.createHiveCatalog`, release 2.0.
"""

from __future__ import annotations

import getpass
from collections.abc import Mapping

import msgspec

from paimon_py.errors import OptionError, UnsupportedError
from paimon_py.metastores.hive.connection import Settings, parse_addresses
from paimon_py.metastores.hive.site import site
from paimon_py.metastores.options import LockOptions, flag, seconds

_JAVA_CLIENT = "org.apache.hadoop.hive.metastore.HiveMetaStoreClient"
_TIMEOUT = "hive.metastore.client.socket.timeout"
_REFUSED = {
    "hive.metastore.kerberos.principal": "Kerberos is not implemented: use a metastore without SASL",
    "hive.metastore.kerberos.keytab.file": "Kerberos is not implemented: use a metastore without SASL",
    "security.kerberos.login.principal": "Kerberos is not implemented: use a metastore without SASL",
    "security.kerberos.login.keytab": "Kerberos is not implemented: use a metastore without SASL",
    "security.kerberos.login.use-ticket-cache": "Kerberos is not implemented: use a metastore without SASL",
    "hive.metastore.token.signature": "SASL tokens are not implemented: use a metastore without SASL",
    "metastore.catalog.default": "only the metastore's default catalog is supported",
    "hive.metastore.client.plain.username": "PLAIN over SASL is not implemented: use a metastore without SASL",
    "hive.metastore.client.plain.password": "PLAIN over SASL is not implemented: use a metastore without SASL",
    "client-pool-cache.keys": "catalogs do not share connections: remove the option",
}
_REFUSED_FLAGS = {
    "hive.metastore.sasl.enabled": "SASL (Kerberos) is not implemented: use a metastore without it",
    "hive.metastore.use.SSL": "TLS is not implemented: use a metastore without it, or a local proxy",
    "hive.metastore.thrift.framed.transport.enabled": "framed messages are not implemented",
    "hive.metastore.thrift.compact.protocol.enabled": "the compact protocol is not implemented",
    "case-sensitive": "a metastore keeps names in lower case",
    "format-table.enabled": "only Paimon tables are listed and opened",
}
_REFUSED_OF_SITE = ("hive.metastore.token.signature", "hive.metastore.client.plain.username")
_REFUSED_VALUES = {
    "hive.metastore.client.auth.mode": ("NOSASL", "authentication is not implemented"),
    "hive.metastore.client.thrift.transport.mode": ("binary", "Thrift over HTTP is not implemented"),
    "metastore.client.class": (_JAVA_CLIENT, "only Hive's own protocol is implemented"),
}


class HiveSettings(msgspec.Struct, frozen=True):
    """The settings of a Hive catalog."""

    servers: Settings
    locks: LockOptions | None
    external: bool
    location_in_properties: bool
    sync_all: bool
    cascade: bool
    skip_statistics: bool

    @classmethod
    def of(cls, options: Mapping[str, str], warehouse: str) -> HiveSettings:
        """Read the options; defaults come from `hive-site.xml` in `hive-conf-dir`.

        Raises:
            OptionError: a value is not allowed, or `uri` is missing.
            UnsupportedError: Kerberos, SASL, TLS and other unsupported features.
        """
        _refuse(options)
        site_options = _client_properties(site(options))
        _refuse(site_options)
        options = {**site_options, **options}
        kind = options.get("table.type", "managed").strip().lower()
        if kind not in ("managed", "external"):
            message = f"option table.type must be managed or external, not {kind!r}"
            raise OptionError(message, option="table.type", value=kind)
        return cls(
            servers=_servers(options),
            locks=LockOptions.of(options, warehouse),
            external=kind == "external",
            location_in_properties=flag(options, "location-in-properties", default=False),
            sync_all=flag(options, "sync-all-properties", default=True),
            cascade=flag(options, "alter-table-cascade", default=True),
            skip_statistics=flag(options, "hive.skip-update-stats", default=False),
        )


def _client_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties of a file that configure the connection: Kerberos names only matter with SASL."""
    known = {"hive.metastore.uris", _TIMEOUT, *_REFUSED_FLAGS, *_REFUSED_VALUES, *_REFUSED_OF_SITE}
    return {name: value for name, value in properties.items() if name in known and value}


def _servers(options: Mapping[str, str]) -> Settings:
    uris = options.get("uri") or options.get("hive.metastore.uris") or ""
    if not uris.strip():
        raise OptionError(
            "a Hive catalog needs the option 'uri', the Thrift addresses of its metastore: 'thrift://host:9083' (or"
            " hive.metastore.uris in the hive-site.xml of the directory that 'hive-conf-dir' names); a"
            " metastore inside the process, which Java starts without it, is not supported",
            option="uri",
        )
    return Settings(
        addresses=parse_addresses(uris),
        user=options.get("hadoop.user.name") or getpass.getuser(),
        timeout_seconds=_timeout(options),
        pool_size=_whole(options, "client-pool-size", 2),
        idle_seconds=_whole(options, "client-pool-cache.eviction-interval-ms", 300_000) / 1000,
    )


def _timeout(options: Mapping[str, str]) -> float:
    """The timeout for answers; Hive interprets numbers without a unit as seconds."""
    text = options.get(_TIMEOUT, "").strip()
    found = float(text) if text.isdecimal() else seconds(options, _TIMEOUT, 600.0)
    if found <= 0:
        raise OptionError(f"option {_TIMEOUT} must be above 0, not {text!r}", option=_TIMEOUT, value=text)
    return found


def _whole(options: Mapping[str, str], name: str, default: int) -> int:
    text = options.get(name, str(default)).strip()
    if not text.isdecimal() or not 0 < int(text) < 2**31:
        raise OptionError(f"option {name} must be a whole number above 0, not {text!r}", option=name, value=text)
    return int(text)


def _refuse(options: Mapping[str, str]) -> None:
    for name, reason in _REFUSED.items():
        if options.get(name, "").strip():
            raise UnsupportedError(f"option {name!r} is not supported: {reason}", feature=name)
    for name, reason in _REFUSED_FLAGS.items():
        if flag(options, name, default=False):
            raise UnsupportedError(f"{name!r} = 'true' is not supported: {reason}", feature=name)
    for name, (only, reason) in _REFUSED_VALUES.items():
        if options.get(name, only).strip().lower() != only.lower():
            raise UnsupportedError(
                f"{name!r} = {options[name].strip()!r} is not supported: {reason}; use {only!r}", feature=name
            )
