"""Groups the options that an engine's connector gets in one mapping by their purpose. Pure.

Source: Java `CatalogOptions`, `CoreOptions`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from paimon_py.errors import OptionError, UnsupportedError
from paimon_py.metastores.options import OF_ALL, OF_KINDS
from paimon_py.spec.idle_options import idle_options
from paimon_py.spec.option_names import FALLBACKS, FIELDS_PREFIX, nearest
from paimon_py.spec.options import OPTIONS
from paimon_py.storage.store_options import FAMILIES

_STORES = ("dfs.", "fs.", "gs.", "hadoop.", "oss.", "s3.", *(one for family in FAMILIES for one in family.prefixes))
_FORMATS = ("avro.", "csv.", "json.", "orc.", "parquet.", FIELDS_PREFIX, "file-index.")


def _by_lower(names: Iterable[str]) -> dict[str, str]:
    return {name.lower(): name for name in names}


_CATALOG = _by_lower({*OF_ALL, *(name for names in OF_KINDS.values() for name in names)})
_OF_TABLES = _by_lower({*OPTIONS, *(name for names in FALLBACKS.values() for name in names)} - {"path", "type"})
_OF_STORES = _by_lower(
    name for family in FAMILIES for prefix in family.prefixes for name in family.full_names(prefix)
)


class OptionGroups(msgspec.Struct, frozen=True, kw_only=True):
    """Options grouped by purpose.

    Attributes:
        own: options of the connector.
        catalog: options of the catalog.
        store: options of the store.
        table: options of the table, for this read or write only.
    """

    own: dict[str, str]
    catalog: dict[str, str]
    store: dict[str, str]
    table: dict[str, str]


def group_options(options: Mapping[str, str], own: Collection[str], elsewhere: Mapping[str, str]) -> OptionGroups:
    """Group options; the case of names is ignored.

    Args:
        own: the names of the connector's own options.
        elsewhere: options that the connector cannot take, and what to do instead.

    Raises:
        OptionError: an unknown option; the error suggests the option that was probably meant.
        UnsupportedError: an option that has no effect in paimon_py yet.
    """
    owned = _by_lower(own)
    found = OptionGroups(own={}, catalog={}, store={}, table={})
    for given, text in options.items():
        name = given.lower()
        if name in elsewhere:
            raise OptionError(f"option {given!r}: {elsewhere[name]}", option=given, value=text)
        if name in owned:
            found.own[owned[name]] = text
        elif name.startswith(_STORES):
            found.store[_OF_STORES.get(name, given)] = text
        elif name in _CATALOG:
            found.catalog[_CATALOG[name]] = text
        elif name in _OF_TABLES:
            found.table[_OF_TABLES[name]] = text
        elif name.startswith(_FORMATS):
            found.table[given] = text
        else:
            raise _unknown(given, {**owned, **_CATALOG, **_OF_TABLES})
    idle = idle_options(found.table)
    if idle:
        raise UnsupportedError(f"these options have no effect yet: {idle}", feature=next(iter(idle)))
    return found


def _unknown(given: str, known: Mapping[str, str]) -> OptionError:
    meant = nearest(given.lower(), frozenset(known))
    hint = "" if meant is None else f"; did you mean {known[meant]!r}?"
    return OptionError(f"the data source has no option {given!r}{hint}", option=given)
