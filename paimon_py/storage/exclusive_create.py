"""Checks the guarantee of `put_new`, that only one of two creators succeeds: known, or probed once.

The clouds themselves guarantee it, with recent client libraries. Servers that only implement their protocol may ignore
the condition, and answer as if it had been applied: such a place is probed with a temporary file before it is trusted.

Source: docs/reliability.md §3 (a); docs/decisions/0008-publication.md.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from urllib.parse import urlsplit

from paimon_py.errors import StorageError, StorageUnknownError, UnsupportedError

Place = tuple[str, str, str]
"""Scheme, endpoint (empty: the cloud's own) and bucket."""

KNOWN = "the cloud itself"
"""The endpoint of a place that needs no probe."""

LOCK_HINT = (
    "keep the table in a catalog that has a lock, for all its writers ('metastore' = 'jdbc' or 'hive' with"
    " 'lock.enabled' = 'true')"
)
"""The alternative for a store without a safe creation."""

_CLOUDS: dict[str, tuple[str, ...]] = {
    "s3fs": (".amazonaws.com", ".amazonaws.com.cn"),
    "gcsfs": (".googleapis.com",),
    "adlfs": (".blob.core.windows.net", ".blob.core.chinacloudapi.cn", ".blob.core.usgovcloudapi.net"),
}
"""Hosts, by client library, whose conditional creation is documented."""

_UNLIKE_THE_CLOUD = "outposts"
_SINCE = (2024, 12)
"""The first releases of the client libraries that support a conditional creation."""

_answers: dict[Place, bool] = {}
"""The results of the places that were probed."""


def is_known(package: str, endpoint: str) -> bool:
    """Whether a client library and an endpoint need no probe."""
    host = urlsplit(endpoint).hostname or ""
    if not host.endswith(_CLOUDS.get(package, ())) or _UNLIKE_THE_CLOUD in host:
        return False
    try:
        return tuple(int(part) for part in version(package).split(".")[:2]) >= _SINCE
    except (PackageNotFoundError, ValueError):
        return False


def check_promise(
    place: Place, probe: str, *, create: Callable[[str, bytes], bool], delete: Callable[[str], None]
) -> None:
    """Refuse a place where a second creator succeeds; the answer is cached for the life of the process.

    Args:
        probe: path of a file that nothing else uses; its directory must be writable.
        create: creates a file under the condition that there is none.
        delete: deletes the probe.

    Cost: two conditional requests and a delete, once per process and place.

    Raises:
        UnsupportedError: the place does not guarantee it.
        StorageError: the place could not be probed.
    """
    kept = _answers.get(place)
    if kept is None:
        try:
            first = create(probe, b"1")
            second = create(probe, b"2")
        except StorageUnknownError as error:
            text = f"whether {probe} can be created safely could not be tried: {error}"
            raise StorageError(text, path=probe, operation="put_new", transient=True) from error.__cause__
        with suppress(StorageError):  # publishing may be permitted without deleting; the probe is harmless
            delete(probe)
        kept = _answers[place] = first and not second
    if not kept:
        scheme, endpoint, bucket = place
        raise UnsupportedError(
            f"bucket {bucket} at {endpoint or scheme} let a second writer create a file that existed (a server that"
            " ignores the condition, or an old client library); commits there could be lost. Use a newer server and"
            f" library, or {LOCK_HINT}",
            feature="commit on a store without conditional writes",
            path=probe,
        )
