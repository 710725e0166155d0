"""Options of catalogs: which there are, and which unknown names are probably one of them misspelled. Pure.

Source: Java `CatalogOptions`, `JdbcCatalogOptions`, `HiveCatalogOptions`, `RESTCatalogOptions`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Mapping

from paimon_py.errors import OptionError
from paimon_py.spec.option_names import FOREIGN_PREFIXES, nearest

METASTORE = "metastore"
WAREHOUSE = "warehouse"
TABLE_DEFAULT_PREFIX = "table-default."
"""Catalog options with this prefix are table options of every new table."""

_OF_ALL = """
    warehouse metastore uri table.type lock.enabled lock.type lock-check-max-sleep lock-acquire-timeout client-pool-size
    cache-enabled cache.expire-after-access cache.expire-after-write cache.partition.max-num
    cache.manifest.small-file-memory cache.manifest.small-file-threshold cache.manifest.max-memory
    cache.manifest.soft-values cache.snapshot.max-num-per-table cache.deletion-vectors.max-num case-sensitive
    sync-all-properties format-table.enabled catalog-options-table.enabled resolving-file-io.enabled
    file-io.allow-cache local-cache.enabled local-cache.dir local-cache.max-size local-cache.block-size
    local-cache.whitelist
"""
OF_ALL = frozenset(_OF_ALL.split())
"""Options of every catalog of Java."""

OF_KINDS: dict[str, frozenset[str]] = {
    "filesystem": frozenset(),
    "jdbc": frozenset(("catalog-key", "lock-key-max-length", "jdbc.user", "jdbc.password")),
}
"""Options of one kind of catalog."""


def check_catalog_options(kind: str, options: Mapping[str, str]) -> None:
    """Refuse names that are nearly, but not quite, an option of a catalog of this kind.

    Unknown names pass through: they may be those of a store, or of another engine.

    Raises: OptionError that names the option that was probably meant.
    """
    known = OF_ALL | OF_KINDS[kind]
    for name in options:
        if name in known or not isinstance(name, str) or name.startswith((*FOREIGN_PREFIXES, TABLE_DEFAULT_PREFIX)):
            continue
        meant = nearest(name, known)
        if meant is not None:
            raise OptionError(f"there is no catalog option {name!r}; did you mean {meant!r}?", option=name)
