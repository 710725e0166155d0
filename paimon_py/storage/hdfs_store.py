"""HDFS over its own protocol; the only module that imports hdfs_native (no Java, no libhdfs).

A file gets its name by a rename that the NameNode refuses if the name is taken: only one client succeeds, and
no reader sees a part of the file. Java publishes with the same call, so its writers can share a table with these.

Source: docs/stores.md, "HDFS"; Java `HadoopFileIO`.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, cast

import hdfs_native

from paimon_py.env import Ids, SystemIds
from paimon_py.errors import (
    AlreadyExistsError,
    PaimonError,
    StorageError,
    StorageUnknownError,
    UnsupportedError,
    UsageError,
)
from paimon_py.storage.hdfs_options import CONF_DIR_ARGUMENT, harmless_config, hdfs_arguments, hdfs_config
from paimon_py.storage.range_reader import RangeReader
from paimon_py.storage.store import FileMissingError, FileStatus, FileTakenError, join

_BUFFER_BYTES = 1 << 20
_DIRECTORY_MODE = 0o755
_NOT_EMPTY = "PathIsNotEmptyDirectoryException"
_REFUSED = ("RPCError(", "FatalRPCError(")
"""Prefixes of the errors that the NameNode itself returns."""

_first_user: list[int] = []
"""The process that used the client first: a forked child does not have the threads of the client."""


class HdfsStore:
    """Files of one HDFS; paths are URLs (`hdfs://host:port/path`, `hdfs:///path` for the default of core-site.xml).

    Args:
        authority: host and port, or a name service; empty for the default.
        config: Hadoop settings that take precedence over those of its files.
        arguments: arguments of `hdfs_native.Client`, by name (`config_dir`, `kerberos_principal`, `kerberos_keytab`).
    """

    def __init__(
        self,
        authority: str,
        config: Mapping[str, str],
        arguments: Mapping[str, str],
        *,
        ids: Ids | None = None,
    ) -> None:
        self._authority = authority
        self._config = dict(config)
        self._arguments = dict(arguments)
        self._ids = ids or SystemIds()
        self._opened: tuple[int, Any] | None = None

    @classmethod
    def open(cls, root: str, options: Mapping[str, str]) -> HdfsStore:
        """The store for a root URL.

        Raises:
            UsageError: the URL has a user.
            OptionError: options that contradict each other.
        """
        authority = root.partition("://")[2].partition("/")[0]
        if "@" in authority:
            raise UsageError("an hdfs:// URL has no user; set HADOOP_USER_NAME in the environment")
        return cls(authority, hdfs_config(options), hdfs_arguments(options))

    def __repr__(self) -> str:
        return f"HdfsStore({self._authority!r})"

    def __reduce__(self) -> tuple[object, ...]:
        known = {name: value for name, value in self._arguments.items() if name == CONF_DIR_ARGUMENT}
        return HdfsStore, (self._authority, harmless_config(self._config), known)

    def get(self, path: str) -> bytes:
        with _translate_errors("get", path):
            return bytes(self._client().read(_inner(path)).read(-1))

    def put_new(self, path: str, data: bytes, *, within: str | None = None) -> bool:
        temporary = self._temporary(path)
        try:
            with _translate_errors("put_new", path):
                self._write(temporary, data, within)
            return self._give_name(temporary, path, data, within)
        finally:
            self._delete_quietly(temporary)

    def require_new(self, directory: str) -> None:
        """Do nothing: every NameNode refuses to rename to a name that is taken."""

    def put(self, path: str, data: bytes, *, within: str | None = None) -> None:
        temporary = self._temporary(path)
        with _translate_errors("put", path):
            try:
                self._write(temporary, data, within)
                self._client().rename(_inner(temporary), _inner(path), True)
            except BaseException:
                self._delete_quietly(temporary)
                raise

    def list(self, directory: str) -> list[FileStatus]:
        here = _inner(directory)
        with _translate_errors("list", directory):
            try:
                found = [info for info in self._client().list_status(here, False) if info.path != here]
            except FileNotFoundError:
                return []
        children = [_status(join(directory, info.path.rpartition("/")[2]), info) for info in found]
        return sorted(children, key=lambda child: child.name)

    def stat(self, path: str) -> FileStatus | None:
        with _translate_errors("stat", path):
            try:
                return _status(path, self._client().get_file_info(_inner(path)))
            except FileNotFoundError:
                return None

    def delete(self, path: str) -> None:
        with _translate_errors("delete", path):
            self._client().delete(_inner(path), False)

    def delete_tree(self, directory: str) -> None:
        with _translate_errors("delete_tree", directory):
            self._client().delete(_inner(directory), True)

    def open_read(self, path: str) -> BinaryIO:
        with _translate_errors("open_read", path):
            reader = self._client().read(_inner(path))
        return cast(BinaryIO, io.BufferedReader(cast(Any, _Reading(reader, path)), _BUFFER_BYTES))

    def open_write(self, path: str, *, within: str | None = None) -> BinaryIO:
        with _translate_errors("open_write", path):
            writer = self._create(path, within)
        return cast(BinaryIO, io.BufferedWriter(cast(Any, _Writing(writer, path, self._ids)), _BUFFER_BYTES))

    def make_directory(self, path: str) -> None:
        with _translate_errors("make_directory", path):
            self._client().mkdirs(_inner(path), _DIRECTORY_MODE, True)

    def remove_directory(self, path: str) -> bool:
        with _translate_errors("remove_directory", path):
            try:
                is_directory = self._client().get_file_info(_inner(path)).isdir
                return is_directory and bool(self._client().delete(_inner(path), False))
            except FileNotFoundError:
                return False
            except RuntimeError as error:
                if _NOT_EMPTY in str(error):
                    return False
                raise

    def rename_directory(self, source: str, target: str) -> None:
        with _translate_errors("rename_directory", source):
            client = self._client()
            if not client.get_file_info(_inner(source)).isdir:
                raise FileNotFoundError(f"{source} is not a directory")
            client.mkdirs(_inner(target).rpartition("/")[0] or "/", _DIRECTORY_MODE, True)
            try:
                client.rename(_inner(source), _inner(target), False)
            except FileExistsError as error:
                raise AlreadyExistsError(f"{target} already exists", path=target) from error

    def _temporary(self, path: str) -> str:
        directory, _, name = path.rpartition("/")
        return f"{directory}/.{name[:40]}.{self._ids.uuid()}.tmp"

    def _create(self, path: str, within: str | None) -> Any:
        """Create a file, below a directory that must exist if `within` is given."""
        client, inner = self._client(), _inner(path)
        options = functools.partial(hdfs_native.WriteOptions, overwrite=False)
        try:
            return client.create(inner, options(create_parent=within is None))
        except FileNotFoundError:
            if within is None:
                raise
        missing = inner.rpartition("/")[0]
        below = missing.removeprefix(_inner(within)).strip("/")
        here = _inner(within)
        for part in below.split("/") if below else ():
            here = f"{here}/{part}"
            try:
                client.mkdirs(here, _DIRECTORY_MODE, False)
            except FileNotFoundError as error:
                raise _missing_error(within) from error
        try:
            return client.create(inner, options(create_parent=False))
        except FileNotFoundError as error:
            raise _missing_error(within) from error

    def _write(self, path: str, data: bytes, within: str | None) -> None:
        writer = self._create(path, within)
        try:
            if data:
                writer.write(data)
        finally:
            writer.close()

    def _give_name(self, temporary: str, path: str, data: bytes, within: str | None) -> bool:
        """Give a complete file its final name unless the name is taken.

        The client repeats a call whose answer was lost: the second call then finds the file of the first one.
        """
        refused: Exception
        try:
            self._client().rename(_inner(temporary), _inner(path), False)
        except (FileExistsError, FileNotFoundError) as error:
            refused = error
        except Exception as error:
            raise _failure("put_new", path, error, ambiguous=True) from error
        else:
            return True
        if self._has_contents(path, data):
            raise StorageUnknownError(
                f"{path} exists with exactly these bytes: created by this call or by an identical one",
                path=path,
                operation="put_new",
            ) from refused
        if isinstance(refused, FileExistsError):
            return False
        raise _missing_error(within or path.rpartition("/")[0]) from refused

    def _has_contents(self, path: str, data: bytes) -> bool:
        """Whether a file has exactly these bytes."""
        try:
            return self.get(path) == data
        except FileMissingError:
            return False
        except StorageError as error:
            raise StorageUnknownError(
                f"{path} exists and could not be read back: {error}", path=path, operation="put_new"
            ) from error

    def _delete_quietly(self, path: str) -> None:
        """Remove a temporary file; one that remains is a harmless orphan."""
        with suppress(Exception):
            self._client().delete(_inner(path), False)

    def _client(self) -> Any:
        """The client of this process.

        Raises: UnsupportedError in a forked child of a process that has one.
        """
        process = self._ids.process()
        if not _first_user:
            _first_user.append(process)
        if _first_user[0] != process:
            raise UnsupportedError(
                "this process was forked from one that has used HDFS, and the threads of the client do not exist here:"
                " start processes by 'spawn' or 'forkserver'",
                feature="HDFS after fork",
            )
        if self._opened is None:
            url = f"hdfs://{self._authority}" if self._authority else None
            try:
                client = hdfs_native.Client(url, self._config, **self._arguments)
            except Exception as error:
                raise UsageError(f"hdfs://{self._authority} cannot be used: {_first_line(error)}") from error
            self._opened = (process, client)
        return self._opened[1]


class _Reading(RangeReader):
    """An open file, read by ranges."""

    def __init__(self, reader: Any, path: str) -> None:
        super().__init__(len(reader))
        self._reader = reader
        self._path = path

    def _read_at(self, start: int, length: int) -> bytes:
        with _translate_errors("read", self._path):
            return bytes(self._reader.read_range(start, length))


class _Writing(io.RawIOBase):
    """A file being written; complete once `close` has returned. A forked child does not touch its parent's file."""

    def __init__(self, writer: Any, path: str, ids: Ids) -> None:
        super().__init__()
        self._writer = writer
        self._path = path
        self._ids = ids
        self._process = ids.process()
        self._written = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._written

    def write(self, data: Any) -> int:
        if self._ids.process() != self._process:
            raise StorageError(f"{self._path} is being written by another process", path=self._path, operation="write")
        with _translate_errors("write", self._path):
            self._written += (count := int(self._writer.write(bytes(data))))
            return count

    def close(self) -> None:
        if self.closed:
            return
        try:
            if self._ids.process() == self._process:
                with _translate_errors("close", self._path):
                    self._writer.close()
        finally:
            super().close()


def _inner(path: str) -> str:
    """The path in its file system, without scheme and authority."""
    return "/" + path.partition("://")[2].partition("/")[2]


def _status(path: str, info: Any) -> FileStatus:
    return FileStatus(
        path=path,
        name=path.rpartition("/")[2],
        size_bytes=0 if info.isdir else int(info.length),
        is_directory=bool(info.isdir),
        modified_millis=int(info.modification_time),
    )


def _missing_error(directory: str) -> FileMissingError:
    return FileMissingError(f"{directory} does not exist (any more)", path=directory, operation="make_directory")


@contextmanager
def _translate_errors(operation: str, path: str) -> Iterator[None]:
    try:
        yield
    except PaimonError:
        raise
    except FileNotFoundError as error:
        raise FileMissingError(f"{path} does not exist", path=path, operation=operation) from error
    except FileExistsError as error:
        if operation != "open_write":
            raise _failure(operation, path, error) from error
        raise FileTakenError(f"{path} already exists", path=path, operation=operation) from error
    except Exception as error:
        raise _failure(operation, path, error) from error


def _failure(operation: str, path: str, error: Exception, *, ambiguous: bool = False) -> StorageError:
    """The storage error. Answers of the NameNode are certain; without an answer the outcome is unknown."""
    text = f"{operation} of {path} failed: {type(error).__name__}: {_first_line(error)}"
    if ambiguous and not str(error).startswith(_REFUSED) and not isinstance(error, PermissionError):
        return StorageUnknownError(text, path=path, operation=operation, transient=True)
    lost = isinstance(error, OSError) and not isinstance(error, PermissionError | FileExistsError)
    return StorageError(text, path=path, operation=operation, transient=lost)


def _first_line(error: Exception) -> str:
    """The message of an error, without the server's stack trace."""
    return str(error).replace("\\n\\tat", "\n").partition("\n")[0]
