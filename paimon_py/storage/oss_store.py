"""Alibaba Cloud OSS; the only module that imports oss2.

A file is created with the header `x-oss-forbid-overwrite`, as in Java. A bucket with versions ignores this header,
so each bucket is probed once per process.

Source: docs/stores.md, "OSS"; Java `OSSFileIO.tryToWriteAtomic`, release 2.0.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import io
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit

import oss2
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from paimon_py.env import Ids, SystemIds, environment
from paimon_py.errors import StorageError, StorageUnknownError, UnsupportedError, UsageError
from paimon_py.spec.redact import shown_url
from paimon_py.storage.exclusive_create import require_exclusive_create
from paimon_py.storage.fsspec_failures import Failures, hide_causes
from paimon_py.storage.oss_options import CLOUD, FORBID, OssSettings
from paimon_py.storage.range_reader import RangeReader
from paimon_py.storage.store import FileMissingError, FileStatus, files_below, join

_PART_BYTES = 8 << 20
_READ_BLOCK_BYTES = 1 << 20
_PAGE = 1000
_RETRIES = Retry(
    total=4, backoff_factor=0.1, status_forcelist=(500, 502, 503, 504), allowed_methods=None, raise_on_status=False
)
_TAKEN = "FileAlreadyExists"
_ENVIRONMENT = ("OSS_ACCESS_KEY_ID", "OSS_ACCESS_KEY_SECRET", "OSS_SESSION_TOKEN")

logging.getLogger("oss2").setLevel(logging.WARNING)  # below, headers with tokens are logged


class OssStore:
    """Files of OSS; paths are URLs (`oss://bucket/key`).

    Pickles contain only settings that are known to be no secrets; the receiving process uses credentials of its
    environment.

    Args:
        settings: the settings from the options.
    """

    def __init__(self, settings: OssSettings, *, ids: Ids | None = None) -> None:
        self._settings = settings
        self._ids = ids or SystemIds()
        self._failures = Failures(_Secrets(self._credentials))
        self._buckets: dict[tuple[int, str, bool], Any] = {}

    def __repr__(self) -> str:
        return f"OssStore({shown_url(self._settings.endpoint)!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return OssStore, (self._settings.harmless(),)

    @hide_causes
    def get(self, path: str) -> bytes:
        bucket, key = self._place(path)
        with self._translate_errors("get", path):
            return bytes(bucket.get_object(key).read())

    @hide_causes
    def get_range(self, path: str, start: int, stop: int) -> bytes:
        """The bytes of a file from `start` up to `stop`. Cost: one request."""
        bucket, key = self._place(path)
        with self._translate_errors("get", path):
            return bytes(bucket.get_object(key, byte_range=(start, stop - 1)).read())

    @hide_causes
    def require_new(self, directory: str) -> None:
        name = directory.split("://", 1)[1].split("/", 1)[0]
        probe = join(directory, f".probe.{self._ids.uuid()}.tmp")
        place = ("oss", shown_url(self._settings.endpoint), name)
        require_exclusive_create(place, probe, create=self._create, delete=self.delete)

    @hide_causes
    def put_new(self, path: str, data: bytes, *, within: str | None = None) -> bool:  # noqa: ARG002
        self.require_new(path.rpartition("/")[0])
        if self._create(path, data):
            return True
        try:
            holds = self.get(path) == data
        except FileMissingError:
            return False
        except StorageError as error:
            raise StorageUnknownError(
                f"{path} exists and could not be read back: {error}", path=path, operation="put_new"
            ) from error.__cause__
        if holds:
            raise StorageUnknownError(
                f"{path} exists with exactly these bytes: created by this call or by an identical one",
                path=path,
                operation="put_new",
            )
        return False

    @hide_causes
    def put(self, path: str, data: bytes, *, within: str | None = None) -> None:  # noqa: ARG002
        bucket, key = self._place(path)
        with self._translate_errors("put", path):
            bucket.put_object(key, data, headers=self._headers(data))

    @hide_causes
    def list_from(self, directory: str, start: str) -> list[FileStatus]:
        """See `ListFrom`. Cost: one request."""
        bucket, key = self._place(directory)
        prefix, after = key.rstrip("/") + "/", self._place(start)[1][:-1]
        with self._translate_errors("list", directory):
            page = bucket.list_objects_v2(prefix=prefix, start_after=after, max_keys=_PAGE)
        keys = ((each.key, each.size) for each in page.object_list)
        return files_below(directory, prefix, keys, start)

    @hide_causes
    def list(self, directory: str) -> list[FileStatus]:
        bucket, key = self._place(directory)
        prefix = key.rstrip("/") + "/" if key else ""
        found: list[FileStatus] = []
        with self._translate_errors("list", directory):
            after, more = "", True
            while more:
                page = bucket.list_objects_v2(prefix=prefix, delimiter="/", continuation_token=after, max_keys=_PAGE)
                found += [_directory(directory, each[len(prefix) : -1]) for each in page.prefix_list]
                found += [_file(directory, each.key[len(prefix) :], each.size, each.last_modified)
                          for each in page.object_list if each.key != prefix]  # fmt: skip
                after, more = page.next_continuation_token, page.is_truncated
        return sorted(found, key=lambda child: child.name)

    @hide_causes
    def stat(self, path: str) -> FileStatus | None:
        bucket, key = self._place(path)
        home, _, name = path.rstrip("/").rpartition("/")
        with self._translate_errors("stat", path):
            try:
                found = bucket.head_object(key)
            except oss2.exceptions.NotFound:
                below = bucket.list_objects_v2(prefix=key.rstrip("/") + "/", max_keys=1)
                return _directory(home, name) if below.object_list else None
            return _file(home, name, found.content_length, found.last_modified)

    @hide_causes
    def delete(self, path: str) -> None:
        bucket, key = self._place(path)
        with self._translate_errors("delete", path):
            bucket.delete_object(key)

    @hide_causes
    def delete_tree(self, directory: str) -> None:
        bucket, key = self._place(directory)
        with self._translate_errors("delete_tree", directory):
            while True:
                page = bucket.list_objects_v2(prefix=key.rstrip("/") + "/", max_keys=_PAGE)
                if page.object_list:
                    bucket.batch_delete_objects([each.key for each in page.object_list])
                if not page.is_truncated:
                    return

    @hide_causes
    def open_read(self, path: str) -> BinaryIO:
        bucket, key = self._place(path)
        with self._translate_errors("open_read", path):
            size = bucket.head_object(key).content_length
        return cast(BinaryIO, io.BufferedReader(cast(Any, _Reading(self, path, int(size))), _READ_BLOCK_BYTES))

    @hide_causes
    def open_write(self, path: str, *, within: str | None = None) -> BinaryIO:  # noqa: ARG002
        return cast(BinaryIO, io.BufferedWriter(cast(Any, _Writing(self, path)), _READ_BLOCK_BYTES))

    def make_directory(self, path: str) -> None:
        """Do nothing: OSS has no directories."""

    def remove_directory(self, path: str) -> bool:  # noqa: ARG002
        """Do nothing: OSS has no directories."""
        return False

    def rename_directory(self, source: str, target: str) -> None:
        """Refuse: OSS copies file by file, and a commit in between would be lost."""
        raise UnsupportedError(
            f"cannot rename {source}: OSS has no atomic rename of a directory to {target}",
            feature="rename on oss",
            path=source,
        )

    def _create(self, path: str, data: bytes) -> bool:
        """One conditional request that is not repeated."""
        bucket, key = self._place(path, once=True)
        try:
            bucket.put_object(key, data, headers={**self._headers(data), FORBID: "true"})
        except Exception as error:  # noqa: BLE001 - raised as ours, the cause shown unless it has a secret
            if getattr(error, "code", None) == _TAKEN:
                return False
            raise self._failures.error("put_new", path, error, ambiguous=True) from self._failures.public_cause(error)
        return True

    def _headers(self, data: bytes) -> dict[str, str]:
        digest = hashlib.md5(data, usedforsecurity=False).digest()
        return {**self._settings.headers, "Content-MD5": base64.b64encode(digest).decode()}

    def _place(self, path: str, *, once: bool = False) -> tuple[Any, str]:
        """The bucket and the key of a path; `once`: for a request that must not be repeated."""
        name, _, key = path.split("://", 1)[1].partition("/")
        process = self._ids.process()
        found = self._buckets.get((process, name, once))
        if found is None:
            host = urlsplit(self._settings.endpoint).hostname or ""
            session = oss2.Session(adapter=HTTPAdapter(max_retries=0 if once else _RETRIES))
            try:
                found = oss2.Bucket(
                    self._auth(),
                    self._settings.endpoint,
                    name,
                    session=session,
                    enable_crc=False,
                    is_cname=self._settings.is_cname and not host.endswith(CLOUD),
                    is_path_style=self._settings.is_path_style,
                )
            except oss2.exceptions.ClientError as error:
                raise UsageError(f"oss://{name} cannot be used: {self._failures.redact(str(error))}") from None
            self._buckets[process, name, once] = found
        return found, key

    def _auth(self) -> Any:
        return oss2.ProviderAuth(_Provider(self._credentials)) if self._credentials() else oss2.AnonymousAuth()

    def _credentials(self) -> tuple[str, ...]:
        """Key, secret and token; empty for anonymous requests."""
        if self._settings.credentials:
            return self._settings.credentials
        found = tuple(environment().get(name, "") for name in _ENVIRONMENT)
        return found if all(found[:2]) else ()

    @contextmanager
    def _translate_errors(self, operation: str, path: str) -> Iterator[None]:
        with self._failures.translate(operation, path):
            try:
                yield
            except (oss2.exceptions.NoSuchKey, oss2.exceptions.NotFound) as error:
                if getattr(error, "code", "") == "NoSuchBucket":
                    raise
                raise FileNotFoundError(path) from None


class _Provider:
    """Credentials of each request, for oss2."""

    def __init__(self, now: Callable[[], tuple[str, ...]]) -> None:
        self._now = now

    def get_credentials(self) -> Any:
        return oss2.credentials.Credentials(*self._now())


class _Secrets(Mapping[str, Any]):
    """The current secrets, for redaction."""

    def __init__(self, now: Callable[[], tuple[str, ...]]) -> None:
        self._now = now

    def _all(self) -> dict[str, str]:
        names = ("key", "secret", "token")
        return {name: value for name, value in zip(names, self._now(), strict=False) if value}

    def __getitem__(self, name: str) -> Any:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


class _Reading(RangeReader):
    """An object, read by ranges."""

    def __init__(self, store: OssStore, path: str, size: int) -> None:
        super().__init__(size)
        self._store = store
        self._path = path

    @hide_causes
    def _read_at(self, start: int, length: int) -> bytes:
        bucket, key = self._store._place(self._path)
        with self._store._translate_errors("read", self._path):
            data = bytes(bucket.get_object(key, byte_range=(start, start + length - 1)).read())
            if len(data) != length:
                raise ConnectionError(f"{len(data)} bytes were returned instead of {length}")
        return data


class _Writing(io.RawIOBase):
    """An object being written: one request if small, otherwise in parts; complete once `close` has returned."""

    def __init__(self, store: OssStore, path: str) -> None:
        super().__init__()
        self._store = store
        self._path = path
        self._buffer = bytearray()
        self._upload = ""
        self._parts: list[Any] = []
        self._failed = False
        self._written = 0
        self._process = store._ids.process()

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._written

    @hide_causes
    def write(self, data: Any) -> int:
        if self._store._ids.process() != self._process:
            raise StorageError(f"{self._path} is being written by another process", path=self._path, operation="write")
        self._buffer += data
        self._written += len(data)
        while len(self._buffer) >= _PART_BYTES:
            self._send(bytes(self._buffer[:_PART_BYTES]))
            del self._buffer[:_PART_BYTES]
        return len(data)

    @hide_causes
    def close(self) -> None:
        if self.closed:
            return
        try:
            if self._store._ids.process() == self._process:
                self._finish()
        finally:
            super().close()

    def _finish(self) -> None:
        if self._failed:
            raise StorageError(f"{self._path} was not written: a part failed", path=self._path, operation="close")
        if not self._upload:
            self._store.put(self._path, bytes(self._buffer))
            return
        if self._buffer:
            self._send(bytes(self._buffer))
        bucket, key = self._store._place(self._path)
        with self._store._translate_errors("close", self._path):
            bucket.complete_multipart_upload(key, self._upload, self._parts)

    def _send(self, data: bytes) -> None:
        bucket, key = self._store._place(self._path)
        headers = self._store._headers(data)
        number = len(self._parts) + 1
        self._failed = True
        with self._store._translate_errors("write", self._path):
            if not self._upload:
                begun = bucket.init_multipart_upload(key, headers=dict(self._store._settings.headers))
                self._upload = begun.upload_id
            digest = {"Content-MD5": headers["Content-MD5"]}
            try:
                sent = bucket.upload_part(key, self._upload, number, data, headers=digest)
            except BaseException:
                bucket.abort_multipart_upload(key, self._upload)
                raise
        self._parts.append(oss2.models.PartInfo(number, sent.etag))
        self._failed = False


def _directory(home: str, name: str) -> FileStatus:
    return FileStatus(path=join(home, name), name=name, size_bytes=0, is_directory=True)


def _file(home: str, name: str, size: int, modified: float | datetime.datetime | None) -> FileStatus:
    millis = None if modified is None else int(float(cast(float, modified)) * 1000)
    return FileStatus(
        path=join(home, name), name=name, size_bytes=int(size), is_directory=False, modified_millis=millis
    )
