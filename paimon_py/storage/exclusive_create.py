"""Checks that a place creates files exclusively, as `put_new` promises: it is known to, or is probed once.

The clouds themselves do, with recent client libraries. Servers that only implement their protocols may ignore the
condition and answer as if it had been applied: they are probed with a temporary file before they are trusted.

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
"""Advice for a store without exclusive creation."""

_CLOUDS: dict[str, tuple[str, ...]] = {
    "s3fs": (".amazonaws.com", ".amazonaws.com.cn"),
    "gcsfs": (".googleapis.com",),
    "adlfs": (".blob.core.windows.net", ".blob.core.chinacloudapi.cn", ".blob.core.usgovcloudapi.net"),
}
"""Hosts that document conditional creation, by client library."""

_UNLIKE_THE_CLOUD = "outposts"
_SINCE = (2024, 12)
"""The first releases of the client libraries that support conditional creation."""

_answers: dict[Place, bool] = {}
"""Places that were probed, and whether they create exclusively."""


def is_known(package: str, endpoint: str) -> bool:
    """Whether a client library and an endpoint need no probe."""
    host = urlsplit(endpoint).hostname or ""
    if not host.endswith(_CLOUDS.get(package, ())) or _UNLIKE_THE_CLOUD in host:
        return False
    try:
        return tuple(int(part) for part in version(package).split(".")[:2]) >= _SINCE
    except (PackageNotFoundError, ValueError):
        return False


def require_exclusive_create(
    place: Place, probe: str, *, create: Callable[[str, bytes], bool], delete: Callable[[str], None]
) -> None:
    """Refuse a place where a second creation of the same file succeeds. The process caches the answer.

    Args:
        probe: path of a temporary file; its directory must be writable.
        create: creates a file on the condition that it does not exist; returns whether it did.
        delete: deletes the probe.

    Cost: two conditional requests and a delete, once per process and place.

    Raises:
        UnsupportedError: the place does not create exclusively.
        StorageError: the place could not be probed.
    """
    kept = _answers.get(place)
    if kept is None:
        try:
            first = create(probe, b"1")
            second = create(probe, b"2")
        except StorageUnknownError as error:
            text = f"could not probe with {probe} whether the store creates files exclusively: {error}"
            raise StorageError(text, path=probe, operation="put_new", transient=True) from error.__cause__
        with suppress(StorageError):  # the credentials may allow creating but not deleting; the probe is harmless
            delete(probe)
        kept = _answers[place] = first and not second
    if not kept:
        scheme, endpoint, bucket = place
        raise UnsupportedError(
            f"bucket {bucket} at {endpoint or scheme} let a second writer create a file that existed, so commits"
            " could be lost there (the server ignores the condition, or the client library is old). Use a newer server"
            f" and library, or {LOCK_HINT}",
            feature="commit on a store without conditional writes",
            path=probe,
        )
