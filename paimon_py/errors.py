"""All errors that paimon_py raises, grouped by what the caller can do next.

::

    PaimonError                         kind, path, table, snapshot_id where known
    ├── UsageError        (ValueError)  fix the call
    │   ├── SchemaError                 data and schema disagree; lists the fields
    │   ├── OptionError                 gives the option, the value, what is allowed
    │   └── UnsupportedError            valid Paimon, not yet supported; gives the feature
    ├── NotFoundError     (LookupError)
    │   ├── DatabaseNotFoundError
    │   ├── TableNotFoundError
    │   ├── SnapshotNotFoundError
    │   │   └── SnapshotExpiredError    it existed; gives the retention and how to pin
    │   ├── TagNotFoundError
    │   ├── BranchNotFoundError
    │   └── ConsumerNotFoundError
    ├── AlreadyExistsError
    ├── CommitError
    │   ├── CommitConflictError         re-read and decide
    │   ├── CommitRetriesExhaustedError try again later
    │   ├── CommitUnknownError          check before retrying; nothing was deleted
    │   └── LockTimeoutError            another process held the table's lock; nothing was done
    ├── CorruptionError                 file, offset, expected, got
    ├── ResourceError                   memory or threads ran out; nothing is wrong with the file
    └── StorageError                    path, operation, transient: yes or no
        └── StorageUnknownError         the operation may or may not have happened

    PaimonWarning     (UserWarning)     the call succeeds, but some requested action was not done
"""

from __future__ import annotations


class PaimonError(Exception):
    """Base of all errors raised by paimon_py.

    Attributes:
        kind: a stable code, one per class, for programs (`"commit-conflict"`).
        path: the file or directory concerned, if any.
        table: the table concerned, if known.
        snapshot_id: the snapshot concerned, if known.
    """

    kind: str = "paimon"

    def __init__(
        self, message: str, *, path: str | None = None, table: str | None = None, snapshot_id: int | None = None
    ) -> None:
        super().__init__(message)
        self.path = path
        self.table = table
        self.snapshot_id = snapshot_id

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), str(self), dict(self.__dict__))


def _rebuild(cls: type[PaimonError], message: str, state: dict[str, object]) -> PaimonError:
    error = cls.__new__(cls)
    Exception.__init__(error, message)
    error.__dict__.update(state)
    return error


class UsageError(PaimonError, ValueError):
    """The call is wrong; the message explains how to fix it."""

    kind = "usage"


class SchemaError(UsageError):
    """Data and schema disagree.

    Attributes:
        fields: names of all offending columns.
    """

    kind = "schema"

    def __init__(self, message: str, *, fields: tuple[str, ...] = (), table: str | None = None) -> None:
        super().__init__(message, table=table)
        self.fields = fields


class OptionError(UsageError):
    """An option has an invalid name or value.

    Attributes:
        option: the option's name.
        value: the value given, if any.
    """

    kind = "option"

    def __init__(self, message: str, *, option: str, value: str | None = None, table: str | None = None) -> None:
        super().__init__(message, table=table)
        self.option = option
        self.value = value


class UnsupportedError(UsageError):
    """A valid Paimon feature that paimon_py does not support; nothing was touched.

    Attributes:
        feature: the feature's name, as in Paimon's documentation.
    """

    kind = "unsupported"

    def __init__(self, message: str, *, feature: str, path: str | None = None, table: str | None = None) -> None:
        super().__init__(message, path=path, table=table)
        self.feature = feature


class NotFoundError(PaimonError, LookupError):
    """An object in the caller's request does not exist."""

    kind = "not-found"


class DatabaseNotFoundError(NotFoundError):
    """The database does not exist in the catalog."""

    kind = "database-not-found"


class TableNotFoundError(NotFoundError):
    """The table does not exist in the catalog or at the path."""

    kind = "table-not-found"


class SnapshotNotFoundError(NotFoundError):
    """The snapshot does not exist."""

    kind = "snapshot-not-found"


class SnapshotExpiredError(SnapshotNotFoundError):
    """The snapshot existed but has expired, perhaps while it was being read."""

    kind = "snapshot-expired"


class TagNotFoundError(NotFoundError):
    """The tag does not exist."""

    kind = "tag-not-found"


class BranchNotFoundError(NotFoundError):
    """The branch does not exist."""

    kind = "branch-not-found"


class ConsumerNotFoundError(NotFoundError):
    """The consumer does not exist."""

    kind = "consumer-not-found"


class AlreadyExistsError(PaimonError):
    """The object to create already exists."""

    kind = "already-exists"


class CommitError(PaimonError):
    """A commit failed, or its outcome is unknown."""

    kind = "commit"


class CommitConflictError(CommitError):
    """Another commit changed what this one depends on; nothing was published. Re-read and decide."""

    kind = "commit-conflict"


class CommitRetriesExhaustedError(CommitError):
    """Other commits won every attempt within the retry budget; nothing was published. Try again later."""

    kind = "commit-retries-exhausted"


class CommitUnknownError(CommitError):
    """The store did not say whether the snapshot was published; no file was deleted.

    `table.commit(error.changes, user=error.user, identifier=error.identifier)`, with the same `overwrite` if there was
    one, is safe: it checks whether the table contains these files, and does nothing if it does.

    Attributes:
        changes: the changes to commit, the bytes of a `Changes`; None if only metadata change.
        user, identifier: as passed by the caller.
    """

    kind = "commit-unknown"
    changes: bytes | None = None
    user: str | None = None
    identifier: int | None = None


class LockTimeoutError(CommitError):
    """The lock of a table could not be acquired in time; nothing was done. Try again, or check who holds the lock."""

    kind = "lock-timeout"


class CorruptionError(PaimonError):
    """A file does not match the format.

    Attributes:
        path: the file.
        offset: byte position, if known.
    """

    kind = "corruption"

    def __init__(
        self, message: str, *, path: str | None = None, offset: int | None = None, table: str | None = None
    ) -> None:
        super().__init__(message, path=path, table=table)
        self.offset = offset


class ResourceError(PaimonError):
    """Memory or threads ran out; nothing is wrong with the file. Read less at a time, or free some."""

    kind = "resources"


class StorageError(PaimonError):
    """The store failed.

    Attributes:
        operation: the store's verb (`get`, `put_new`, …).
        transient: whether the same call may succeed later.
    """

    kind = "storage"

    def __init__(self, message: str, *, path: str | None = None, operation: str, transient: bool = False) -> None:
        super().__init__(message, path=path)
        self.operation = operation
        self.transient = transient


class StorageUnknownError(StorageError):
    """The operation may or may not have happened."""

    kind = "storage-unknown"


class PaimonWarning(UserWarning):
    """A requested action was not done, such as the expiry that a table option asks for."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
