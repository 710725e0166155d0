"""Files on local disks and mounted network disks."""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, cast

import pyarrow as pa

from paimon_py.env import Ids, SystemIds
from paimon_py.errors import AlreadyExistsError, PaimonError, StorageError, StorageUnknownError, UnsupportedError
from paimon_py.storage.store import FileMissingError, FileStatus, FileTakenError

_TRANSIENT = {errno.EAGAIN, errno.EBUSY, errno.EINTR, errno.ESTALE, errno.ETIMEDOUT}
_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
_NOT_EMPTY = {errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR}
_MAKING = ("put_new", "put", "open_write")
_READING = ("get", "list", "stat", "open_read", "read")
_WRITE_BUFFER_BYTES = 1 << 16
_TREE_ATTEMPTS = 10
_CREATE_ATTEMPTS = 10
_WINDOWS = os.name == "nt"


class LocalStore:
    """Files below absolute paths of this machine.

    `put_new` writes a hidden temporary file in the same directory, makes it durable, and gives it its name with a hard
    link, which fails if the name is taken: only one process succeeds, and no reader ever sees a part. A file system
    without hard links is refused by name. `put` replaces atomically but does not wait for the disk.

    Args:
        fsync: wait until new files and their directories are on disk. Without it a power failure may lose commits;
            a killed process does not.
        ids: the source of names for temporary files.
    """

    def __init__(self, *, fsync: bool = True, ids: Ids | None = None) -> None:
        self.fsync = fsync
        self._ids = ids or SystemIds()

    def __repr__(self) -> str:
        return "LocalStore()" if self.fsync else "LocalStore(fsync=False)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalStore) and other.fsync == self.fsync

    def __hash__(self) -> int:
        return hash((LocalStore, self.fsync))

    def get(self, path: str) -> bytes:
        with _translate_errors("get", path):
            descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0))
            try:
                with io.FileIO(descriptor, "rb", closefd=False) as file:
                    return file.readall()
            finally:
                os.close(descriptor)

    def put_new(self, path: str, data: bytes, *, within: str | None = None) -> bool:
        directory, name = os.path.split(path)
        temporary = os.path.join(directory, f".{name[:40]}.{self._ids.uuid()}.tmp")
        with _translate_errors("put_new", path):
            if os.path.lexists(path):
                return False
            try:
                self._write(temporary, data, within, durable=self.fsync)
                created = _publish(temporary, path)
            finally:
                _remove_quietly(temporary)
        if created and self.fsync:
            try:
                _sync_directory(directory)
            except OSError as error:
                raise StorageUnknownError(
                    f"{path} was created, but its directory may not be on disk: {error}", path=path, operation="put_new"
                ) from error
        return created

    def require_new(self, directory: str) -> None:
        """Do nothing: file systems without hard links refuse the first file."""

    def put(self, path: str, data: bytes, *, within: str | None = None) -> None:
        directory, name = os.path.split(path)
        temporary = os.path.join(directory, f".{name[:40]}.{self._ids.uuid()}.tmp")
        with _translate_errors("put", path):
            try:
                self._write(temporary, data, within, durable=False)
                os.replace(temporary, path)
            except BaseException:
                _remove_quietly(temporary)
                raise

    def list_names(self, directory: str) -> list[str]:
        """See `ListNames`. Cost: no call for each file, unlike `list`."""
        with _translate_errors("list", directory):
            try:
                with os.scandir(directory) as entries:
                    return sorted(entry.name for entry in entries if not entry.is_dir())
            except (FileNotFoundError, NotADirectoryError):
                return []

    def list(self, directory: str) -> list[FileStatus]:
        with _translate_errors("list", directory):
            try:
                with os.scandir(directory) as entries:
                    found = [status for entry in entries if (status := _status(entry.path, entry.name))]
            except (FileNotFoundError, NotADirectoryError):
                return []
        return sorted(found, key=lambda status: status.name)

    def stat(self, path: str) -> FileStatus | None:
        with _translate_errors("stat", path):
            return _status(path, os.path.basename(path))

    def delete(self, path: str) -> None:
        with _translate_errors("delete", path):
            try:
                os.unlink(path)
            except (FileNotFoundError, NotADirectoryError):
                return

    def delete_tree(self, directory: str) -> None:
        with _translate_errors("delete_tree", directory):
            for _ in range(_TREE_ATTEMPTS):
                if _removed_tree(directory):
                    return
            raise OSError(errno.ENOTEMPTY, "other processes keep changing the files below it", directory)

    def open_read(self, path: str) -> BinaryIO:
        with _translate_errors("open_read", path):
            return cast(BinaryIO, pa.OSFile(path, "rb"))

    def open_write(self, path: str, *, within: str | None = None) -> BinaryIO:
        with _translate_errors("open_write", path):
            descriptor = self._create(path, within)
            return cast(BinaryIO, _NewFile(descriptor, path, self._ids, durable=self.fsync))

    def make_directory(self, path: str) -> None:
        with _translate_errors("make_directory", path):
            _make_directories(path, durable=self.fsync)

    def remove_directory(self, path: str) -> bool:
        with _translate_errors("remove_directory", path):
            try:
                os.rmdir(path)
            except OSError as error:
                if error.errno in _NOT_EMPTY:
                    return False
                raise
        return True

    def rename_directory(self, source: str, target: str) -> None:
        with _translate_errors("rename_directory", source):
            if not os.path.isdir(source):
                raise FileNotFoundError(errno.ENOENT, "no such directory", source)
            _make_directories(os.path.dirname(target), durable=self.fsync)
            try:
                _move_directory(source, target)
            except FileExistsError as error:
                raise AlreadyExistsError(f"{target} already exists", path=target) from error
            if self.fsync:
                _sync_directory(os.path.dirname(source))
                _sync_directory(os.path.dirname(target))

    def _create(self, path: str, within: str | None) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
        for _ in range(_CREATE_ATTEMPTS):
            with suppress(FileNotFoundError):
                return os.open(path, flags, 0o666)
            # others may remove the directory until it contains a file
            _make_directories(os.path.dirname(path), within, durable=self.fsync)
        return os.open(path, flags, 0o666)

    def _write(self, path: str, data: bytes, within: str | None, *, durable: bool) -> None:
        descriptor = self._create(path, within)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)


class _NewFile(io.BufferedWriter):
    """A file being written; durable together with its name once `close` has returned.

    A forked child shares the file with its parent: it writes nothing, and closing does not touch the file.
    """

    def __init__(self, descriptor: int, path: str, ids: Ids, *, durable: bool) -> None:
        super().__init__(io.FileIO(descriptor, "wb"), _WRITE_BUFFER_BYTES)
        self._path = path
        self._ids = ids
        self._process = ids.process()
        self._durable = durable

    def write(self, data: object) -> int:
        if self._ids.process() != self._process:
            raise StorageError(f"{self._path} is being written by another process", path=self._path, operation="write")
        try:
            return super().write(data)  # type: ignore[arg-type]
        except OSError as error:
            raise _to_storage_error(error, "write", self._path) from error

    def flush(self) -> None:
        with _translate_errors("write", self._path):
            super().flush()

    def close(self) -> None:
        if self.closed:
            return
        if self._ids.process() != self._process:
            self.raw.close()
            return
        with _translate_errors("close", self._path):
            try:
                super().flush()
                if self._durable:
                    os.fsync(self.fileno())
                    _sync_directory(os.path.dirname(self._path))
            finally:
                self.raw.close()


def absolute_path(text: str) -> str:
    """A path in the form of this store: absolute, with slashes, `~` and `..` resolved."""
    return os.path.abspath(os.path.expanduser(text)).replace(os.sep, "/")


@contextmanager
def _translate_errors(operation: str, path: str) -> Iterator[None]:
    """Convert OSError to the errors that the verbs specify, and errors for invalid paths as well."""
    try:
        yield
    except PaimonError:
        raise
    except (OSError, ValueError) as error:
        raise _to_storage_error(error, operation, path) from error


def _to_storage_error(error: OSError | ValueError, operation: str, path: str) -> StorageError:
    if isinstance(error, FileNotFoundError):
        subject = f"the directory of {path}" if operation in _MAKING else path
        return FileMissingError(f"{subject} does not exist (any more)", path=path, operation=operation)
    if isinstance(error, FileExistsError) and operation == "open_write":
        return FileTakenError(f"{path} already exists", path=path, operation=operation)
    message = f"{operation} of {path} failed: {error}"
    if isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        verb = "read" if operation in _READING else "delete" if operation.startswith(("delete", "remove")) else "write"
        message = f"the user of this process may not {verb} {path}: {error.strerror}"
    return StorageError(message, path=path, operation=operation, transient=getattr(error, "errno", None) in _TRANSIENT)


def _publish(temporary: str, path: str) -> bool:
    """Give a complete file its final name unless the name is taken."""
    if _WINDOWS:
        try:
            os.rename(temporary, path)
        except FileExistsError:
            return False
        return True
    try:
        os.link(temporary, path)
    except OSError as error:
        if _is_same_file(temporary, path):
            return True
        if error.errno == errno.EEXIST:
            return False
        if error.errno in _NO_HARD_LINKS:
            raise UnsupportedError(
                f"cannot create {path} safely: its file system has no hard links. Keep the table on a disk that has"
                " them (ext4, xfs, apfs, ntfs, nfs, …) or in an object store",
                feature="commit on a file system without hard links",
                path=path,
            ) from error
        raise
    return True


def _is_same_file(first: str, second: str) -> bool:
    """Whether two names are one file: on network disks a link may be created although the call reports an error."""
    try:
        return os.path.samefile(first, second)
    except OSError:
        return False


def _status(path: str, name: str) -> FileStatus | None:
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    is_directory = stat.S_ISDIR(status.st_mode)
    return FileStatus(
        path=path,
        name=name,
        size_bytes=0 if is_directory else status.st_size,
        is_directory=is_directory,
        modified_millis=status.st_mtime_ns // 1_000_000,
    )


def _move_directory(source: str, target: str) -> None:
    """Rename a directory to a name that does not exist.

    A directory that appears there in the meantime is replaced only while it is empty. Nothing is created to reserve the
    name: late writers that still know a table with this name would put files into it.
    """
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, "already exists", target)
    try:
        os.rename(source, target)
    except OSError as error:
        if error.errno == errno.ENOTEMPTY:
            raise FileExistsError(errno.EEXIST, "already exists", target) from error
        raise


def _make_directories(path: str, within: str | None = None, *, durable: bool) -> None:
    """Make a directory and its parents, up to `within`, which is never made."""
    missing = []
    here = path
    while here and not os.path.isdir(here):
        if here == within:
            raise FileMissingError(f"{within} does not exist (any more)", path=within, operation="make_directory")
        missing.append(here)
        here = os.path.dirname(here)
    for directory in reversed(missing):
        try:
            os.mkdir(directory)
        except FileExistsError:
            continue
        if durable:
            _sync_directory(os.path.dirname(directory))


def _removed_tree(directory: str) -> bool:
    """Remove a directory and everything below it. False if others removed or added something meanwhile."""
    import shutil

    try:
        shutil.rmtree(directory)
    except FileNotFoundError:
        return not os.path.lexists(directory)
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:
            raise
        return False
    return True


def _sync_directory(path: str) -> None:
    if _WINDOWS:
        return
    descriptor = os.open(path or ".", os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_quietly(path: str) -> None:
    """Remove a temporary file; one that remains is a harmless orphan."""
    try:
        os.unlink(path)
    except OSError:
        return
