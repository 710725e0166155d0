"""Names of new data files: `data-<uuid>-<n>.<format>`.

Source: format.md §1.1; Java `DataFilePathFactory`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Protocol

from paimon_py.env import Ids
from paimon_py.spec.layout import check_prefixes
from paimon_py.spec.options import Options

_AGAIN = re.compile(r"(.*)-r[0-9a-f]{12}((?:\.[^-]*)?)")
_EXTENSIONS = {"gzip": "gz", "bzip2": "bz2", "zstd": "zst"}


class FileNames(Protocol):
    """Names for new data files."""

    def data(self, format_name: str, compression: str) -> str:
        """The name of the next data file."""
        ...

    def changelog(self, format_name: str, compression: str) -> str:
        """The name of the next changelog file."""
        ...


class DataFileNames:
    """Fresh names for one writer: one random part for all of them, and one counter for data and changelog files.

    After a fork parent and child hold the same object: each process has a random part of its own.
    """

    __slots__ = ("_changelog_prefix", "_count", "_ids", "_prefix", "_process", "_uuid", "_with_compression")

    def __init__(self, options: Mapping[str, str], ids: Ids, *, prefix: str | None = None) -> None:
        """`prefix`: of data files, in place of the option `data-file.prefix`.

        Raises: OptionError for a prefix that is not part of a plain file name; tables of others are not checked before.
        """
        typed = Options(options)
        check_prefixes(typed)
        self._prefix = typed.get_str("data-file.prefix") if prefix is None else prefix
        self._changelog_prefix = typed.get_str("changelog-file.prefix")
        self._with_compression = typed.get_bool("file.suffix.include.compression")
        self._ids = ids
        self._process = ids.process()
        self._uuid = ids.uuid()
        self._count = 0

    def data(self, format_name: str, compression: str) -> str:
        """The name of the next data file."""
        return self._next(self._prefix, format_name, compression)

    def changelog(self, format_name: str, compression: str) -> str:
        """The name of the next changelog file."""
        return self._next(self._changelog_prefix, format_name, compression)

    def _next(self, prefix: str, format_name: str, compression: str) -> str:
        process = self._ids.process()
        if process != self._process:
            self._process, self._uuid = process, self._ids.uuid()
        word = compression.lower()
        shown = self._with_compression and word not in ("", "none")
        extension = f".{_EXTENSIONS.get(word, word)}.{format_name}" if shown else f".{format_name}"
        name = f"{prefix}{self._uuid}-{self._count}{extension}"
        self._count += 1
        return name


class NamesAgain:
    """Names for files that are written again in the place of others: theirs, and a random part.

    So the names of a table tell that a file stands for another.
    """

    __slots__ = ("_ids", "_name")

    def __init__(self, name: str, ids: Ids) -> None:
        self._name = name
        self._ids = ids

    def data(self, format_name: str, compression: str) -> str:
        """A name for a data file in the place of the other one; what the name ends with stays."""
        del format_name, compression
        head, dash, tail = self._name.rpartition("-")
        number, dot, extension = tail.partition(".")
        return f"{head}{dash}{number}-r{_short(self._ids.uuid())}{dot}{extension}"

    changelog = data
    """A changelog file is named after the other one too."""


def earlier_names(name: str) -> Iterator[str]:
    """The names of the files in whose place a file was written, if it was."""
    while (found := _AGAIN.fullmatch(name)) is not None:
        name = found[1] + found[2]
        yield name


def _short(uuid: str) -> str:
    return hashlib.blake2b(uuid.encode(), digest_size=6).hexdigest()
