"""Opens the metastore that options configure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath

from paimon_py.env import Env
from paimon_py.errors import OptionError, UnsupportedError, UsageError
from paimon_py.metastores.directories import DirectoryMetastore
from paimon_py.metastores.metastore import Metastore
from paimon_py.metastores.options import METASTORE, WAREHOUSE, check_catalog_options, idle_options
from paimon_py.metastores.warehouse import open_warehouse

Opening = Callable[[str, Mapping[str, str], Env, bool], Metastore]
"""Opens a metastore of one kind: warehouse, options, environment, and whether to create missing directories."""


def open_metastore(
    path: str | PurePath | None, options: Mapping[str, str], env: Env, *, create: bool
) -> Metastore:
    """Open the metastore of the option `metastore` over a warehouse; see `Catalog.open` for errors."""
    kind = str(options.get(METASTORE, "filesystem")).lower()
    opening = _OPENINGS.get(kind)
    if opening is None:
        known = ", ".join(repr(name) for name in sorted(_OPENINGS))
        raise UnsupportedError(
            f"catalogs with 'metastore' = {options[METASTORE]!r} are not supported; the supported kinds are {known}",
            feature=f"metastore={options[METASTORE]}",
        )
    check_catalog_options(kind, options)
    _warn_of_idle(kind, options)
    location = options.get(WAREHOUSE) if path is None else path
    if not isinstance(location, (str, PurePath)) or not location:
        raise UsageError(
            f"Catalog.open needs the path or URL of a warehouse, not {type(location).__name__} or an empty string"
        )
    return opening(str(location), options, env, create)


def _warn_of_idle(kind: str, options: Mapping[str, str]) -> None:
    """Warn of options that belong to another kind of catalog, which the caller may have intended."""
    idle = idle_options(kind, options)
    if not idle:
        return
    from paimon_py.logs import warn

    shown = "; ".join(f"{name!r} of {_one_of(kinds)}" for name, kinds in sorted(idle.items()))
    said = f"'metastore' is {kind!r}" if METASTORE in options else "'metastore' is not set (tables are directories)"
    warn(
        f"{said}, so options of other kinds of catalogs have no effect: {shown}. Set 'metastore' ="
        f" {_one_of(min(idle.values(), key=len))}, or remove them"
    )


def _one_of(kinds: Sequence[str]) -> str:
    return " or ".join(map(repr, kinds))


def _directories(warehouse: str, options: Mapping[str, str], env: Env, create: bool) -> Metastore:
    if options.get("lock.enabled", "false").strip().lower() == "true":
        raise OptionError(
            "a file system catalog has no lock: remove 'lock.enabled', or use a catalog with locks ('metastore' ="
            " 'hive' or 'jdbc')",
            option="lock.enabled",
            value="true",
        )
    store, place = open_warehouse(warehouse, options, env, create=create)
    return DirectoryMetastore(store, place, env=env, options=options)


def _jdbc(warehouse: str, options: Mapping[str, str], env: Env, create: bool) -> Metastore:
    from paimon_py.metastores.jdbc.metastore import JdbcMetastore

    return JdbcMetastore.open(warehouse, options, env, create)


def _hive(warehouse: str, options: Mapping[str, str], env: Env, create: bool) -> Metastore:
    from paimon_py.metastores.hive.metastore import HiveMetastore

    return HiveMetastore.open(warehouse, options, env, create)


def _rest(warehouse: str, options: Mapping[str, str], env: Env, _create: bool) -> Metastore:
    from paimon_py.metastores.rest.metastore import RestMetastore

    return RestMetastore.open(warehouse, options, env)


_OPENINGS: dict[str, Opening] = {"filesystem": _directories, "hive": _hive, "jdbc": _jdbc, "rest": _rest}
