"""Names of new data files: `data-<uuid>-<n>.<format>`.

Source: format.md §1.1; Java `DataFilePathFactory`.
"""

from __future__ import annotations

from collections.abc import Mapping

from paimon_py.env import Ids
from paimon_py.spec.options import Options

_EXTENSIONS = {"gzip": "gz", "bzip2": "bz2", "zstd": "zst"}


class DataFileNames:
    """Fresh names for one writer: one random part for all of them, and one counter for data and changelog files.

    After a fork parent and child hold the same object: each process has a random part of its own.
    """

    __slots__ = ("_changelog_prefix", "_count", "_ids", "_prefix", "_process", "_uuid", "_with_compression")

    def __init__(self, options: Mapping[str, str], ids: Ids, *, prefix: str | None = None) -> None:
        """`prefix`: of data files, in place of the option `data-file.prefix`."""
        typed = Options(options)
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
