"""Azure file systems on which the user's settings take precedence over the environment.

adlfs uses a connection string of the environment for every URL, whatever account the URL and the options name: tables
would be written to another account.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

from paimon_py.errors import UsageError

_FROM_ENVIRONMENT = ("connection_string", "account_key", "sas_token")
_CREDENTIALS = ("account_key", "sas_token", "client_id", "credential")
_ACCOUNT = re.compile(r"(?:^|;)\s*AccountName\s*=\s*([^;\s]+)", re.IGNORECASE)


def open_file_system(kind: Any, arguments: Mapping[str, Any]) -> Any:
    """A file system of adlfs.

    Raises: UsageError if the URL names one account, and a connection string of the environment another.
    """
    if any(arguments.get(name) for name in _CREDENTIALS) or arguments.get("anon") is False:
        return _explicit(kind)(**arguments)
    system = kind(**arguments)
    named, found = arguments.get("account_name"), _ACCOUNT.search(getattr(system, "connection_string", None) or "")
    if named is not None and found is not None and found.group(1) != named:
        raise UsageError(
            f"the URL or an option names the account {named!r}, but AZURE_STORAGE_CONNECTION_STRING of the environment"
            f" the account {found.group(1)!r}: unset that variable, or give credentials of {named!r} as options"
        )
    return system


@functools.cache
def _explicit(kind: Any) -> Any:
    """The class of adlfs, ignoring connection strings, keys and signatures of the environment."""

    class Explicit(kind):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **named: Any) -> None:
            self._own = {name: named.get(name) for name in _FROM_ENVIRONMENT}
            super().__init__(*arguments, **named)

        def __setattr__(self, name: str, value: Any) -> None:
            if name in _FROM_ENVIRONMENT and not self._own[name]:
                value = None
            super().__setattr__(name, value)

    return Explicit
