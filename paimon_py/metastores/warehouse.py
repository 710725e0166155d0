"""The warehouse directory of a catalog."""

from __future__ import annotations

from collections.abc import Mapping

from paimon_py.env import Env, is_distant
from paimon_py.errors import NotFoundError, UsageError
from paimon_py.spec.layout import DATABASE_SUFFIX, schema_directory
from paimon_py.storage.refreshing_store import open_refreshing
from paimon_py.storage.store import Store


def open_warehouse(warehouse: str, options: Mapping[str, str], env: Env, *, create: bool) -> tuple[Store, str]:
    """The store of a warehouse, and its path in that store; created if it is missing and `create` is set.

    Raises:
        NotFoundError: the directory does not exist, and `create` is not set.
        UsageError: the path is a file (checked on local disks only, since object stores have no directories).
    """
    store, place = open_refreshing(warehouse, options, env)
    if create and is_distant(place):
        store.make_directory(place)
        return store, place
    status = store.stat(place)
    if create and status is not None and not status.is_directory:
        raise UsageError(f"{place} is a file: a warehouse is a directory, such as the parent of a database")
    if create:
        store.make_directory(place)
        return store, place
    if status is None or not status.is_directory:
        message = f"the warehouse {place} does not exist: Catalog.open creates it unless create=False"
        raise NotFoundError(message, path=place)
    _require_no_part(store, place.rstrip("/"))
    return store, place


def _require_no_part(store: Store, place: str) -> None:
    """Refuse a database or table, whose name gives it away. Cost: nothing for other names, or one list.

    Raises: NotFoundError
    """
    parent, _, name = place.rpartition("/")
    above = parent.rpartition("/")[0]
    if parent.endswith(DATABASE_SUFFIX) and store.list(schema_directory(place)):
        raise NotFoundError(f"{place} is a table, not a warehouse: its warehouse is {above or '.'}", path=place)
    if name.endswith(DATABASE_SUFFIX) and not any(each.name.endswith(DATABASE_SUFFIX) for each in store.list(place)):
        raise NotFoundError(f"{place} is a database, not a warehouse: its warehouse is {parent or '.'}", path=place)
