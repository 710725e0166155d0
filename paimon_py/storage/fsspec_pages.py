"""Listings of object stores that begin at a path, one request for each page: fsspec lists whole directories only.

S3 answers with the keys after `StartAfter`, Google Cloud Storage with those from `startOffset` on, at any depth and in
the order of their bytes. Azure Blob Storage has no such request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from paimon_py.storage.store import FileStatus, files_below

_PAGE = 1000
"""The most keys that one request returns."""


class PageRequest(NamedTuple):
    """The request for a page: the method of an fsspec file system that sends requests, and its arguments.

    `arguments` are those of the method, for a bucket, a prefix, and the key at which the page begins. `files` returns
    keys and sizes.
    """

    method: str
    arguments: Callable[[str, str, str], tuple[tuple[str, ...], dict[str, object]]]
    files: Callable[[Any], Iterable[tuple[str, int]]]


def _of_s3(bucket: str, prefix: str, start: str) -> tuple[tuple[str, ...], dict[str, object]]:
    """Only keys greater than `StartAfter` are listed: the first key without its last character is less than it."""
    return ("list_objects_v2",), {"Bucket": bucket, "Prefix": prefix, "StartAfter": start[:-1], "MaxKeys": _PAGE}


def _of_gcs(bucket: str, prefix: str, start: str) -> tuple[tuple[str, ...], dict[str, object]]:
    asked = {"prefix": prefix, "startOffset": start, "maxResults": _PAGE, "fields": "items(name,size)"}
    return ("GET", "b/{}/o", bucket), {**asked, "json_out": True}


REQUESTS = {
    "s3": PageRequest(
        "_call_s3", _of_s3, lambda page: ((each["Key"], int(each["Size"])) for each in page.get("Contents", ()))
    ),
    "gs": PageRequest(
        "_call", _of_gcs, lambda page: ((each["name"], int(each.get("size", 0))) for each in page.get("items", ()))
    ),
}
"""The requests of each scheme."""


class KeyPage(NamedTuple):
    """One page of the files below a directory: the call of the file system that fetches it, and how it is read."""

    call: Callable[..., Any]
    words: tuple[str, ...]
    named: dict[str, object]
    files: Callable[[Any], list[FileStatus]]


def page_from(scheme: str, system: Any, directory: str, start: str) -> KeyPage:
    """The page of the files below a directory that begins at the path `start`. See `ListFrom`."""
    request, home = REQUESTS[scheme], directory.rstrip("/")
    bucket, key, *_ = system.split_path(home)
    prefix = f"{key}/" if key else ""
    words, named = request.arguments(bucket, prefix, prefix + start[len(home) + 1 :])

    def files(page: Any) -> list[FileStatus]:
        return files_below(home, prefix, request.files(page), start)

    return KeyPage(getattr(system, request.method), words, {**named, **getattr(system, "req_kw", {})}, files)
