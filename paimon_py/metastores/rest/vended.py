"""The store of one table with credentials from the server, which are renewed before they expire.

Source: Java `RESTTokenFileIO`, main of August 2026.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paimon_py.env import Env
from paimon_py.errors import StorageError
from paimon_py.metastores.rest.messages import TokenAnswer
from paimon_py.metastores.rest.transport import RestRefusedError
from paimon_py.storage.open import open_store
from paimon_py.storage.refreshing_store import StoreLease

if TYPE_CHECKING:
    from paimon_py.metastores.rest.registration import RestTable

ENDPOINT = "dlf.oss-endpoint"
_OSS_ENDPOINT = "fs.oss.endpoint"


class VendedStore:
    """A location of one table, opened with the server's credentials."""

    __slots__ = ("_table", "_url")

    def __init__(self, table: RestTable, url: str) -> None:
        self._table = table
        self._url = url

    @property
    def env(self) -> Env:
        """See `StoreSource.env`."""
        return self._table.client.env

    def fetch(self) -> tuple[StoreLease, str]:
        """See `StoreSource.fetch`. Cost: one request.

        Raises: as `RestClient.get` and `open_store`
        """
        table = self._table
        clock = self.env.clock
        try:
            answer = table.client.get(table.main_path("token"), TokenAnswer)
        except RestRefusedError as refused:
            if refused.status == 404:
                raise table.missing(refused) from refused
            raise
        now, end = clock.millis(), answer.expiresAtMillis
        if end <= now:
            raise StorageError(
                f"the credentials from the server for {str(table.name)!r} expired {(now - end) // 1000} s ago by"
                " the clock of this machine: check both clocks",
                operation="token",
            )
        given = table.client.options()
        options = {**given, **answer.token}
        if given.get(ENDPOINT):
            options[_OSS_ENDPOINT] = given[ENDPOINT]
        store, path = open_store(self._url, options)
        return StoreLease.since(store, now, end), path

    def at(self, url: str) -> VendedStore:
        """See `StoreSource.at`: as in Java, a table's credentials are for its external paths as well."""
        return VendedStore(self._table, url)

    def __reduce__(self) -> tuple[object, ...]:
        return VendedStore, (self._table, self._url)

    def __repr__(self) -> str:
        return f"VendedStore({str(self._table.name)!r})"
