"""Object stores and all other file systems of fsspec; the only module that uses fsspec's file systems.

Publishing a file needs one request that fails when the name exists. S3, Google Cloud Storage and Azure Blob Storage
support it (`If-None-Match: *`, `ifGenerationMatch=0`); buckets of other servers are probed once per process. Elsewhere
reading and plain writing work and `put_new` is refused by name.
"""

from __future__ import annotations

import datetime
import functools
import inspect
import io
import operator
from collections.abc import Hashable, Mapping
from contextlib import suppress
from typing import Any, BinaryIO, cast

import fsspec
import fsspec.asyn

from paimon_py.env import Ids, SystemIds
from paimon_py.errors import StorageUnknownError, UnsupportedError, UsageError
from paimon_py.spec.redact import shown_url, without_user
from paimon_py.storage import azure_session
from paimon_py.storage.cloud_options import fsspec_arguments, harmless_arguments
from paimon_py.storage.exclusive_create import KNOWN, LOCK_HINT, is_known, require_exclusive_create
from paimon_py.storage.fsspec_failures import Failures, hide_causes, http_status
from paimon_py.storage.fsspec_pages import REQUESTS, page_from
from paimon_py.storage.range_reader import WrappedFile
from paimon_py.storage.store import FileMissingError, FileStatus, ListFrom, has_contents, join

ALIASES = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}
_EXTRAS = {"s3": "s3", "gs": "gcs", "abfs": "azure", "abfss": "azure", "az": "azure"}
_EXISTS_STATUS = {"s3": {412}, "gs": {412}, "abfs": {409, 412}, "abfss": {409, 412}, "az": {409, 412}}
_ENDPOINT_OF = {
    "s3": ("s3fs", "s3.meta.endpoint_url"),
    "gs": ("gcsfs", "_location"),
    **dict.fromkeys(("abfs", "abfss", "az"), ("adlfs", "service_client.primary_endpoint")),
}
"""The library of a scheme, and the attribute of its file system that contains the endpoint."""

_OWN = ("key", "secret", "token", "profile")

_PATTERN = frozenset("*?[")
_ONE_PUT_BYTES = 32 << 20
_READ_BLOCK_BYTES = 1 << 20
_CONNECTIONS = 64
"""The maximum number of simultaneous requests to S3."""


class FsspecStore:
    """Files of one fsspec scheme; paths are URLs (`s3://bucket/key`).

    Pickles contain only settings that are known to be no secrets: if the credentials were options, the receiving
    process uses the cloud's own chain.

    Args:
        scheme: the fsspec protocol.
        arguments: arguments of the fsspec file system.
    """

    def __init__(self, scheme: str, arguments: Mapping[str, Any], *, ids: Ids | None = None) -> None:
        self.scheme = scheme
        self._arguments = dict(arguments)
        self._ids = ids or SystemIds()
        self._failures = Failures(self._arguments)
        self._opened: dict[bool, Any] = {}
        self._endpoint: str | None = None

    @classmethod
    def open(cls, scheme: str, root: str, options: Mapping[str, str]) -> FsspecStore:
        """The store for a root URL.

        Raises:
            UsageError: the scheme is unknown or its package is not installed, or the URL has an unsupported user.
        """
        given = _url_arguments(scheme, root)
        user = root.partition("://")[2].partition("/")[0].rpartition("@")[0]
        if without_user(root) != root and user not in given.values():
            raise UsageError(f"a {scheme}:// URL must not hold a user; give credentials as options")
        return cls(scheme, {**given, **fsspec_arguments(scheme, options, root)})

    def __repr__(self) -> str:
        return f"FsspecStore({self.scheme!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return FsspecStore, (self.scheme, harmless_arguments(self._arguments))

    @hide_causes
    def get(self, path: str) -> bytes:
        with self._failures.translate("get", path):
            system = self._system()
            return bytes(system.cat_file(path, **_whole(cast(Hashable, type(system)))))

    @hide_causes
    def get_range(self, path: str, start: int, stop: int) -> bytes:
        """The bytes of a file from `start` up to `stop`. Cost: one request."""
        with self._failures.translate("get", path):
            return bytes(self._system().cat_file(path, start=start, end=stop))

    @hide_causes
    def require_new(self, directory: str) -> None:
        with self._failures.translate("put_new", directory):
            self._require_exclusive_create(directory)

    @hide_causes
    def put_new(self, path: str, data: bytes, *, within: str | None = None) -> bool:
        with self._failures.translate("put_new", path):
            self._require_exclusive_create(path.rpartition("/")[0])
            self._require(within)
        if self._create(path, data):
            return True
        if has_contents(self, path, data):
            # aiohttp repeats a PUT whose connection broke, independently of the retry settings of the SDKs.
            raise StorageUnknownError(
                f"{path} exists with exactly these bytes: created by this call or by an identical one",
                path=path,
                operation="put_new",
            )
        return False

    @hide_causes
    def put(self, path: str, data: bytes, *, within: str | None = None) -> None:
        with self._failures.translate("put", path):
            self._require(within)
            self._system().pipe_file(path, data)

    @hide_causes
    def list_from(self, directory: str, start: str) -> list[FileStatus]:
        """See `ListFrom`; only for S3 and Google Cloud Storage. Cost: one request."""
        with self._failures.translate("list", directory):
            system = self._system()
            page = page_from(self.scheme, system, directory, start)
            return page.files(fsspec.asyn.sync(system.loop, page.call, *page.words, **page.named))

    @hide_causes
    def list(self, directory: str) -> list[FileStatus]:
        with self._failures.translate("list", directory):
            system = self._system()
            system.invalidate_cache()
            try:
                found = _list(system, directory)
            except (FileNotFoundError, NotADirectoryError):
                return []
            here = system._strip_protocol(directory).rstrip("/")
            children = [_status(directory, info) for info in found if _is_child(here, info)]
        return sorted(children, key=lambda child: child.name)

    def page_lister(self) -> ListFrom | None:
        """See `page_lister`."""
        request = REQUESTS.get(self.scheme)
        return self.list_from if request is not None and hasattr(_system_class(self.scheme), request.method) else None

    @hide_causes
    def stat(self, path: str) -> FileStatus | None:
        with self._failures.translate("stat", path):
            system = self._system()
            system.invalidate_cache()
            try:
                return _status(path.rpartition("/")[0], system.info(path))
            except FileNotFoundError:
                return None

    @hide_causes
    def delete(self, path: str) -> None:
        with self._failures.translate("delete", path):
            try:
                self._system().rm_file(path)
            except FileNotFoundError:
                return

    @hide_causes
    def delete_tree(self, directory: str) -> None:
        with self._failures.translate("delete_tree", directory):
            system = self._system()
            system.invalidate_cache()
            try:
                if _PATTERN.isdisjoint(directory):
                    system.rm(directory, recursive=True)
                else:
                    _delete_literally(system, directory, directories=self.scheme not in _EXISTS_STATUS)
            except FileNotFoundError:
                return

    @hide_causes
    def open_read(self, path: str) -> BinaryIO:
        with self._failures.translate("open_read", path):
            file = self._system().open(path, "rb", block_size=_READ_BLOCK_BYTES, cache_type="readahead")
        return cast(BinaryIO, _Stream(self, file, path, "open_read"))

    @hide_causes
    def open_write(self, path: str, *, within: str | None = None) -> BinaryIO:
        with self._failures.translate("open_write", path):
            self._require(within)
            if self.scheme not in _EXISTS_STATUS:
                self._system().makedirs(path.rpartition("/")[0], exist_ok=True)
            file = self._system().open(path, "wb")
        return cast(BinaryIO, io.BufferedWriter(cast(Any, _Stream(self, file, path, "open_write")), _READ_BLOCK_BYTES))

    @hide_causes
    def make_directory(self, path: str) -> None:
        if self.scheme not in _EXISTS_STATUS:
            with self._failures.translate("make_directory", path):
                self._system().makedirs(path, exist_ok=True)

    def remove_directory(self, path: str) -> bool:  # noqa: ARG002
        """Do nothing: object stores have no directories, and `rmdir` of other systems may delete the contents."""
        return False

    def rename_directory(self, source: str, target: str) -> None:
        """Refuse: these stores copy file by file, and a commit in between would be lost."""
        raise UnsupportedError(
            f"cannot rename {source}: {self.scheme} has no atomic rename of a directory to {target}",
            feature=f"rename on {self.scheme}",
            path=source,
        )

    def _require(self, within: str | None) -> None:
        """Refuse if a directory is gone, on stores with directories. Cost: one request there."""
        if within is not None and self.scheme not in _EXISTS_STATUS and not self._system().isdir(within):
            raise FileMissingError(f"{within} does not exist (any more)", path=within, operation="make_directory")

    def _create(self, path: str, data: bytes) -> bool:
        """One conditional request, without the retries that would turn success into "already exists"."""
        if len(data) > _ONE_PUT_BYTES:
            raise UsageError(f"{path}: {len(data)} bytes are too many for one conditional request")
        extra = {"retry_total": 0} if _EXTRAS.get(self.scheme) == "azure" else {}
        try:
            self._system(once=True).pipe_file(path, data, mode="create", **extra)
        except Exception as error:  # noqa: BLE001 - raised as ours, the cause shown unless it has a secret
            if isinstance(error, FileExistsError) or http_status(error) in _EXISTS_STATUS[self.scheme]:
                return False
            raise self._failures.error("put_new", path, error, ambiguous=True) from self._failures.public_cause(error)
        return True

    def _require_exclusive_create(self, directory: str) -> None:
        """Refuse stores that cannot create files exclusively, even if they claim to.

        Cost: nothing on the clouds themselves; elsewhere two conditional requests and a delete, once per process and
        bucket.
        """
        if self.scheme not in _EXISTS_STATUS:
            raise UnsupportedError(
                f"cannot create files in {directory} safely: {self.scheme} has no request that fails when the file"
                " exists. Tables can be written on local disks, HDFS, S3, Google Cloud Storage and Azure Blob Storage;"
                f" elsewhere {LOCK_HINT}",
                feature=f"commit on {self.scheme}",
                path=directory,
            )
        if self._endpoint is None:
            self._endpoint = _endpoint(self.scheme, self._system(once=True), self._arguments)
        if self._endpoint is KNOWN:
            return
        bucket = directory.split("://", 1)[1].split("/", 1)[0]
        place = (self.scheme, self._endpoint, bucket)
        probe = join(directory, f".probe.{self._ids.uuid()}.tmp")
        require_exclusive_create(place, probe, create=self._create, delete=self.delete)

    def _system(self, *, once: bool = False) -> Any:
        """The fsspec file system of this process; `once`: the one for requests that must not be repeated."""
        system = self._opened.get(once)
        if system is None or not _is_of_this_process(system):
            system = self._opened[once] = _open(self.scheme, self._arguments, once=once)
        return system


class _Stream(WrappedFile):
    """An open fsspec file whose failures are storage errors."""

    def __init__(self, store: FsspecStore, file: Any, path: str, operation: str) -> None:
        super().__init__(file)
        self._store = store
        self._path = path
        self._operation = operation

    def readable(self) -> bool:
        return self._operation == "open_read"

    def writable(self) -> bool:
        return self._operation == "open_write"

    @hide_causes
    def read(self, size: int | None = -1) -> bytes:
        with self._store._failures.translate("read", self._path):
            return super().read(size)

    @hide_causes
    def write(self, data: Any) -> int:
        with self._store._failures.translate("write", self._path):
            return int(self._file.write(data))

    @hide_causes
    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        with self._store._failures.translate("seek", self._path):
            return int(self._file.seek(offset, whence))

    @hide_causes
    def tell(self) -> int:
        with self._store._failures.translate("tell", self._path):
            return super().tell()

    @hide_causes
    def close(self) -> None:
        if self.closed:
            return
        try:
            with self._store._failures.translate("close", self._path):
                self._file.close()
        finally:
            io.RawIOBase.close(self)


def _delete_literally(system: Any, directory: str, *, directories: bool) -> None:
    """Delete a directory whose name fsspec would interpret as a pattern and delete other files instead."""
    for here, _, names in list(system.walk(directory, topdown=False)):
        for name in names:
            with suppress(FileNotFoundError):
                system.rm_file(f"{here}/{name}")
        if directories:
            with suppress(FileNotFoundError):
                system.rmdir(here)


def _system_class(scheme: str) -> Any:
    try:
        return fsspec.get_filesystem_class(scheme)
    except (ImportError, ValueError) as error:  # fsspec knows abfss only if its package is installed
        extra = _EXTRAS.get(scheme)
        if extra or isinstance(error, ImportError):
            install = f'pip install "paimon-py[{extra}]"' if extra else str(error)
            raise UsageError(f"{scheme}:// needs a package that is not installed: {install}") from error
        known = "s3, gs, abfss, oss, hdfs and memory"
        raise UsageError(f"unknown URL scheme {scheme}://; those of stores are {known}") from error


def _s3_class() -> Any:
    """The file system of s3fs; if s3fs serves S3, one that sends the bytes to write immediately."""
    kind = _system_class("s3")
    if (kind.__module__, kind.__name__) != ("s3fs.core", "S3FileSystem"):
        return kind
    from paimon_py.storage.s3_session import without_expect_continue

    return without_expect_continue(kind)


def _url_arguments(scheme: str, root: str) -> Mapping[str, Any]:
    """The arguments for a file system in a URL besides the path."""
    try:
        return cast(Mapping[str, Any], _system_class(scheme)._get_kwargs_from_urls(root))
    except UsageError:
        raise
    except Exception as error:  # any error of a URL, or of a retired file system
        raise UsageError(f"{scheme}:// cannot be used here: {type(error).__name__}: {error}") from error


@functools.lru_cache(maxsize=8)
def _whole(kind: Any) -> Mapping[str, int]:
    """Arguments for fetching a whole file with one request: newer s3fs ask for the size first, to split large files."""
    parameters = inspect.signature(kind._cat_file).parameters if hasattr(kind, "_cat_file") else {}
    return {"max_concurrency": 1} if "max_concurrency" in parameters else {}


def _list(system: Any, directory: str) -> Any:
    """The contents of a directory; s3fs may return the parent's if it finds nothing."""
    if getattr(system, "protocol", ("",))[0] != "s3" or not hasattr(system, "_lsdir"):
        return system.ls(directory, detail=True)
    return fsspec.asyn.sync(system.loop, system._lsdir, system._strip_protocol(directory).rstrip("/"), refresh=True)


def _is_of_this_process(system: Any) -> bool:
    """Whether a file system is usable: those that were opened before a fork are not."""
    try:
        return system is not None and getattr(system, "loop", True) is not None
    except RuntimeError:
        return False


def _is_child(directory: str, info: Mapping[str, Any]) -> bool:
    """Whether an entry is in a directory: listings may contain the directory itself, or the listed file."""
    parent, _, name = str(info["name"]).rstrip("/").rpartition("/")
    return bool(name) and parent.endswith(directory)


def _status(directory: str, info: Mapping[str, Any]) -> FileStatus:
    name = str(info["name"]).rstrip("/").rpartition("/")[2]
    is_directory = info.get("type") == "directory"
    return FileStatus(
        path=join(directory, name),
        name=name,
        size_bytes=0 if is_directory else int(info.get("size") or 0),
        is_directory=is_directory,
        modified_millis=None if is_directory else _modified_millis(info),
    )


def _modified_millis(info: Mapping[str, Any]) -> int | None:
    for name in ("LastModified", "last_modified", "mtime", "updated", "modified"):
        value = info.get(name)
        if isinstance(value, str):
            value = datetime.datetime.fromisoformat(value.replace("Z", "+00:00"))
        if isinstance(value, datetime.datetime):
            return int(value.timestamp() * 1000)
        if isinstance(value, int | float):
            return int(value * 1000)
    return None


def _endpoint(scheme: str, system: Any, arguments: Mapping[str, Any]) -> str:
    """The endpoint of requests; `KNOWN` for the cloud itself if the libraries are known to send the condition."""
    package, place = _ENDPOINT_OF[scheme]
    try:
        found = str(operator.attrgetter(place)(system))
        if is_known(package, found) and (scheme != "s3" or _sends_condition(system.s3)):
            return KNOWN
    except AttributeError:  # a library with other internals
        found = str(arguments.get("client_kwargs", {}).get("endpoint_url") or arguments.get("endpoint_url") or "")
    return shown_url(found)


def _sends_condition(client: Any) -> bool:
    """Whether botocore supports the condition: it silently omits unknown parameters from a request."""
    return "IfNoneMatch" in client.meta.service_model.operation_model("PutObject").input_shape.members


def _in_role(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, with a session instead of a role and the credentials that assume it."""
    if "role" not in given:
        return dict(given)
    from paimon_py.storage.s3_session import role_session

    own = {name: given[name] for name in _OWN if name in given}
    session = role_session(given["role"], own, given.get("client_kwargs", {}).get("region_name"))
    rest = {name: value for name, value in given.items() if name not in _OWN and name != "role"}
    return {**rest, "session": session, "skip_instance_cache": True}


def _open(scheme: str, given: Mapping[str, Any], *, once: bool) -> Any:
    """A file system of fsspec; `once`: one that repeats no request."""
    arguments = {"use_listings_cache": False, **_in_role(given)}
    if scheme == "s3":
        arguments["config_kwargs"] = {"max_pool_connections": _CONNECTIONS, **arguments.get("config_kwargs", {})}
        kind = _s3_class()
    else:
        kind = _system_class(scheme)
    if once:
        arguments["skip_instance_cache"] = True
    if _EXTRAS.get(scheme) == "azure":
        return azure_session.open_file_system(kind, arguments)
    if not once:
        return kind(**arguments)
    if scheme == "s3":
        config = {**arguments.get("config_kwargs", {}), "retries": {"total_max_attempts": 1}}
        system = kind(**{**arguments, "config_kwargs": config})
        system.retries = 1
        return system
    system = kind(**arguments)
    unwrapped = getattr(getattr(type(system), "_request", None), "__wrapped__", None)
    if scheme == "gs" and unwrapped is not None:
        system._request = functools.partial(unwrapped, system)
    return system
