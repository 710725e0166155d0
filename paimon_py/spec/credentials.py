"""Store credentials that expire. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Credentials(msgspec.Struct, frozen=True):
    """Options with credentials, under Paimon's names, and their expiry time.

    `repr` hides the options.
    """

    options: Mapping[str, str]
    expires_millis: int | None = None
    """Epoch milliseconds; None: they do not expire."""

    def __repr__(self) -> str:
        return f"Credentials(expires_millis={self.expires_millis})"
