"""Records the files of all imports into a table: one small file per import, in the directory `import` of the table.

The file is written before the commit, under the identifier of the commit, and marked after it. So after any crash a
later import knows whether the files of an earlier one were committed, even if they were compacted or overwritten
since.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from paimon_py.arguments import decoding_metadata
from paimon_py.commit.commit import committed_before
from paimon_py.commit.conflicts import Conflict
from paimon_py.commit.state import State
from paimon_py.errors import CommitConflictError
from paimon_py.metadata.history import HistoryGap
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.commit_label import CommitLabel
from paimon_py.spec.layout import join
from paimon_py.spec.snapshot import Base

DIRECTORY = "import"
USER = "paimon-py import"


class Import(msgspec.Struct, frozen=True, kw_only=True):
    """One import.

    Attributes:
        number: the identifier of its commit by `USER`.
        source: the directory.
        files: URLs of the files.
        done: whether the commit is known to have happened.
    """

    number: int
    source: str
    files: tuple[str, ...]
    done: bool = False

    @property
    def label(self) -> CommitLabel:
        """The user and identifier of the commit."""
        return CommitLabel(USER, self.number)


class EarlierImports(msgspec.Struct, frozen=True, kw_only=True):
    """The earlier imports of a table when the next one begins.

    Attributes:
        urls: URLs of all imported files.
        number: the identifier of the next import.
        base: a state of the table; imports committed after it may be missing here.
    """

    urls: frozenset[str] = frozenset()
    number: int = 1
    base: Base = Base.of(None)

    def require_alone(self, state: State) -> Conflict | None:
        """A conflict if another import was committed since, or may have been. Cost: one get per snapshot since."""
        history = state.snapshot_log.after(self.base, state.latest)
        if isinstance(history, HistoryGap) or any(snapshot.commit_user == USER for snapshot in history.snapshots):
            return Conflict("another import was committed in the meantime; call again to import the remaining files")
        return None


class Ledger:
    """The imports of a table."""

    def __init__(self, table: OpenTable) -> None:
        self._table = table
        self._root, self._schema = table.root, table.schema
        self._directory = join(table.root.path, DIRECTORY)

    def imports(self) -> list[Import]:
        """All imports, in order. Cost: one list, and one get per import."""
        names = [status.name for status in self._root.store.list(self._directory) if not status.is_directory]
        numbers = sorted(int(name[:-5]) for name in names if name.endswith(".json") and name[:-5].isdecimal())
        return [self._read(number) for number in numbers]

    def settle(self) -> EarlierImports:
        """The earlier imports. Interrupted imports are marked as done if their commit is in the table, and otherwise
        forgotten.

        Cost: one list, and one get per import.
        """
        base = Base.of(self._root.latest())
        found: set[str] = set()
        last = 0
        for each in self.imports():
            last = each.number
            if each.done or committed_before(self._table, each.label) is not None:
                found.update(each.files)
                if not each.done:
                    self.mark(each)
            else:
                self._root.store.delete(self._path(each.number))
        return EarlierImports(urls=frozenset(found), number=last + 1, base=base)

    def begin(self, settled: EarlierImports, source: str, files: Iterable[str]) -> Import:
        """Record the files that will be committed.

        Raises: CommitConflictError if another import began in the meantime.
        """
        made = Import(number=settled.number, source=source, files=tuple(files))
        if not self._root.store.put_new(self._path(made.number), msgspec.json.encode(made), within=self._root.path):
            raise CommitConflictError(
                f"another import into {self._root.path} is running; call again when it has ended", path=self._root.path
            )
        return made

    def mark(self, made: Import) -> None:
        """Mark an import as committed."""
        data = msgspec.json.encode(msgspec.structs.replace(made, done=True))
        self._root.store.put(self._path(made.number), data, within=self._root.path)

    def _read(self, number: int) -> Import:
        path = self._path(number)
        with decoding_metadata(path):
            return msgspec.json.decode(self._root.store.get(path), type=Import)

    def _path(self, number: int) -> str:
        return join(self._directory, f"{number}.json")
