"""Credentials of a store that end. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Credentials(msgspec.Struct, frozen=True):
    """Options that hold credentials, by Paimon's names, and when the credentials end.

    Texts show no option.
    """

    options: Mapping[str, str]
    expires_millis: int | None = None
    """Epoch milliseconds; None: they do not end."""

    def __repr__(self) -> str:
        return f"Credentials(expires_millis={self.expires_millis})"
