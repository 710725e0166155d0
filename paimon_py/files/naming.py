"""Names of new data files: `data-<uuid>-<n>.<format>`.

Source: format.md §1.1; Java `DataFilePathFactory`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import NamedTuple, Protocol

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


class NameRules(NamedTuple):
    """The common parts of the names of all new files of a table."""

    prefix: str
    changelog_prefix: str
    with_compression: bool

    @classmethod
    def of(cls, options: Options, *, prefix: str | None = None) -> NameRules:
        """The rules that options set; `prefix`: the prefix of data files, in place of the option `data-file.prefix`.

        Raises: OptionError for an invalid prefix; options of tables from other writers are not checked earlier.
        """
        check_prefixes(options)
        return cls(
            options.get_str("data-file.prefix") if prefix is None else prefix,
            options.get_str("changelog-file.prefix"),
            options.get_bool("file.suffix.include.compression"),
        )


class DataFileNames:
    """Unique names for one writer: a random part common to all names, and one counter for data and changelog files.

    After a fork, each process uses a random part of its own.
    """

    __slots__ = ("_count", "_ids", "_process", "_rules", "_uuid")

    def __init__(self, rules: NameRules, ids: Ids) -> None:
        self._rules = rules
        self._ids = ids
        self._process = ids.process()
        self._uuid = ids.uuid()
        self._count = 0

    def data(self, format_name: str, compression: str) -> str:
        """The name of the next data file."""
        return self._next(self._rules.prefix, format_name, compression)

    def changelog(self, format_name: str, compression: str) -> str:
        """The name of the next changelog file."""
        return self._next(self._rules.changelog_prefix, format_name, compression)

    def _next(self, prefix: str, format_name: str, compression: str) -> str:
        process = self._ids.process()
        if process != self._process:
            self._process, self._uuid = process, self._ids.uuid()
        word = compression.lower()
        shown = self._rules.with_compression and word not in ("", "none")
        extension = f".{_EXTENSIONS.get(word, word)}.{format_name}" if shown else f".{format_name}"
        name = f"{prefix}{self._uuid}-{self._count}{extension}"
        self._count += 1
        return name


class ReplacementNames:
    """Names for files that replace others: the old name plus a random part.

    So file names record that a file replaces another.
    """

    __slots__ = ("_ids", "_name")

    def __init__(self, name: str, ids: Ids) -> None:
        self._name = name
        self._ids = ids

    def data(self, format_name: str, compression: str) -> str:
        """The name of a data file that replaces the old one; the suffix is kept."""
        del format_name, compression
        head, dash, tail = self._name.rpartition("-")
        number, dot, extension = tail.partition(".")
        return f"{head}{dash}{number}-r{_short(self._ids.uuid())}{dot}{extension}"

    changelog = data
    """Changelog files use the same scheme."""


def earlier_names(name: str) -> Iterator[str]:
    """The names of the files that a file has replaced, if any."""
    while (found := _AGAIN.fullmatch(name)) is not None:
        name = found[1] + found[2]
        yield name


def _short(uuid: str) -> str:
    return hashlib.blake2b(uuid.encode(), digest_size=6).hexdigest()
