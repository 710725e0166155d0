"""Whether a store keeps the promise of `put_new`, that of two creators one is refused: known, or tried once.

The clouds themselves keep it, with client libraries that are new enough. Servers that only speak their protocol may not
know the condition, and answer as if all were well: such a place is tried with a file of its own before it is trusted.

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
"""The endpoint of what needs no trial."""

LOCK_HINT = (
    "keep the table in a catalog that has a lock, for all its writers ('metastore' = 'jdbc' or 'hive' with"
    " 'lock.enabled' = 'true')"
)
"""The way out for a store without a safe creation."""

_CLOUDS: dict[str, tuple[str, ...]] = {
    "s3fs": (".amazonaws.com", ".amazonaws.com.cn"),
    "gcsfs": (".googleapis.com",),
    "adlfs": (".blob.core.windows.net", ".blob.core.chinacloudapi.cn", ".blob.core.usgovcloudapi.net"),
}
"""Hosts, by client library, whose conditional creation is documented."""

_UNLIKE_THE_CLOUD = "outposts"
_SINCE = (2024, 12)
"""The releases from which on the client libraries know a conditional creation."""

_answers: dict[Place, bool] = {}
"""What was seen of places that had to be tried."""


def is_known(package: str, endpoint: str) -> bool:
    """Whether a client library and an endpoint need no trial."""
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
    """Refuse a place that lets a second creator have its way; the answer is kept for the life of the process.

    Args:
        probe: path of a file that nobody else has; its directory must be one that may be written to.
        create: creates a file under the condition that there is none.
        delete: deletes the probe.

    Cost: two conditional requests and a delete, once per process and place.

    Raises:
        UnsupportedError: the place does not keep the promise.
        StorageError: the place could not be asked.
    """
    kept = _answers.get(place)
    if kept is None:
        try:
            first = create(probe, b"1")
            second = create(probe, b"2")
        except StorageUnknownError as error:
            text = f"whether {probe} can be created safely could not be tried: {error}"
            raise StorageError(text, path=probe, operation="put_new", transient=True) from error.__cause__
        with suppress(StorageError):  # whoever may not delete may publish all the same; the probe harms nobody
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
