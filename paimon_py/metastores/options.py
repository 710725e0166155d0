"""Catalog options: known names, and unknown ones that are probably misspelled. Pure.

Source: Java `CatalogOptions`, `JdbcCatalogOptions`, `HiveCatalogOptions`, `RESTCatalogOptions`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from paimon_py.errors import OptionError
from paimon_py.metastores.option_rows import BY_KIND, OF_ALL_ROWS
from paimon_py.spec.option_names import FOREIGN_PREFIXES, nearest
from paimon_py.spec.options import parse_duration

METASTORE = "metastore"
WAREHOUSE = "warehouse"
TABLE_DEFAULT_PREFIX = "table-default."
"""The prefix of catalog options that are table options of every new table."""

OF_ALL = frozenset(row[0] for row in OF_ALL_ROWS)
"""Options of all catalogs in Java."""

OF_KINDS: dict[str, frozenset[str]] = {kind: frozenset(row[0] for row in rows) for kind, rows in BY_KIND.items()}
"""Options of each kind of catalog."""


_DLF = "dlf."


def check_catalog_options(kind: str, options: Mapping[str, str]) -> None:
    """Refuse names that are nearly, but not exactly, the name of an option of this kind of catalog.

    Unknown names are accepted: they may belong to a store, or to another engine.

    Raises: OptionError; the message names the option that was probably meant, or those that exist.
    """
    known = OF_ALL | OF_KINDS[kind]
    for name in options:
        if name in known or not isinstance(name, str) or name.startswith((*FOREIGN_PREFIXES, TABLE_DEFAULT_PREFIX)):
            continue
        meant = nearest(name, known)
        if meant is None and name.startswith("headers."):
            meant = name.replace("headers.", "header.", 1)
        if meant is not None:
            raise OptionError(f"catalog option {name!r} does not exist; did you mean {meant!r}?", option=name)
        if kind == "rest" and name.startswith(_DLF):
            there = ", ".join(sorted(each for each in known if each.startswith(_DLF)))
            raise OptionError(f"catalog option {name!r} does not exist; the options of DLF are {there}", option=name)


def idle_options(kind: str, options: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """The options that only other kinds of catalogs use, with these kinds.

    `hadoop-conf-dir` is used by the store of any catalog.
    """
    found = {}
    for name in options:
        kinds = tuple(sorted(each for each in OF_KINDS if each != "filesystem" and _follows(each, name)))
        if kinds and kind not in kinds and name not in _OF_STORES:
            found[name] = kinds
    return found


def _follows(kind: str, name: str) -> bool:
    return name == "uri" or name in OF_KINDS[kind] or name.startswith(_PREFIXES.get(kind, ()))


_PREFIXES: dict[str, tuple[str, ...]] = {"jdbc": ("jdbc.",), "rest": (_DLF, "header.")}
_OF_STORES = frozenset(("hadoop-conf-dir",))


def flag(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    """The value of a boolean option.

    Raises: OptionError for an invalid value.
    """
    text = options.get(name, str(default)).strip().lower()
    if text not in ("true", "false"):
        raise OptionError(f"option {name} must be true or false, not {text!r}", option=name, value=text)
    return text == "true"


def seconds(options: Mapping[str, str], name: str, default: float) -> float:
    """The value of a duration option such as `8 min`, in seconds.

    Raises: OptionError for an invalid value.
    """
    text = options.get(name)
    if text is None:
        return default
    nanos = parse_duration(text)
    if nanos is None:
        raise OptionError(f"option {name} must be a duration such as '8 min', not {text!r}", option=name, value=text)
    return nanos / 1e9


class LockOptions(msgspec.Struct, frozen=True):
    """The timeouts for acquiring and holding a catalog's lock, in seconds."""

    acquire_timeout: float = 480.0
    longest_sleep: float = 8.0

    @classmethod
    def of(cls, options: Mapping[str, str], warehouse: str) -> LockOptions | None:
        """The lock timeouts of a catalog over this warehouse; None if it uses no locks.

        By default locks are used on object stores, as in Java.

        Raises: OptionError for invalid values, and for `lock.type`.
        """
        if "lock.type" in options:
            raise OptionError(
                "option 'lock.type' is not supported: a catalog uses its own kind of lock", option="lock.type"
            )
        scheme, mark, _ = warehouse.partition("://")
        if not flag(options, "lock.enabled", default=bool(mark) and scheme not in _WITH_RENAME):
            return None
        return cls(
            acquire_timeout=seconds(options, "lock-acquire-timeout", 480.0),
            longest_sleep=seconds(options, "lock-check-max-sleep", 8.0),
        )


_WITH_RENAME = ("file", "hdfs", "memory", "viewfs")
