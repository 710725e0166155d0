"""The settings of a writer: the options of its table, unless the caller overrides them."""

from __future__ import annotations

import msgspec

from paimon_py.lsm.spill import SpillSettings
from paimon_py.memory import UNLIMITED, MemoryShares
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema

_OF_BUFFERS = 8
_BUFFER_MAX = 1 << 30
"""Rows of one bucket are sorted as single Arrow arrays, whose text may not exceed 2 GB."""


class WriterSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one writer.

    `buckets`: a fixed number of buckets in every partition; None: as the option `bucket` says. `compacts`: buckets are
    compacted before changes are handed over. `buffer_bytes`: maximum memory of buffered rows. `spills`: how to spill
    rows to local disk; None: they are written to files of level 0. `keeps_changelog`: write the changelog that the
    table configures; overwrites have none.
    """

    buckets: int | None = None
    compacts: bool
    buffer_bytes: int
    spills: SpillSettings | None
    keeps_changelog: bool = True

    @classmethod
    def of(
        cls, schema: TableSchema, *, buckets: int | None = None, compacts: bool | None = None,
        memory: MemoryShares = UNLIMITED,
    ) -> WriterSettings:  # fmt: skip
        """The settings of a table; the arguments override its options `bucket` and `write-only`.

        `memory`: a table that does not set `write-buffer-size` takes a share of it if that is less than the default.

        Raises: OptionError if an option has an invalid value.
        """
        options = Options(schema.options)
        buffer = min(options.get_memory("write-buffer-size"), _BUFFER_MAX)
        if not options.is_set("write-buffer-size"):
            buffer = memory.cap(buffer, _OF_BUFFERS)
        return cls(
            buckets=buckets,
            compacts=not options.get_bool("write-only") if compacts is None else compacts,
            buffer_bytes=buffer,
            spills=_spills(options, buffer) if options.get_bool("write-buffer-spillable") else None,
        )

    @property
    def without_changelog(self) -> WriterSettings:
        """The settings of a writer whose changes are committed as an overwrite."""
        return msgspec.structs.replace(self, keeps_changelog=False)

    @classmethod
    def in_one_run(
        cls, schema: TableSchema, *, buckets: int | None = None, memory: MemoryShares = UNLIMITED
    ) -> WriterSettings:
        """The settings of writers that produce one sorted run of all rows of a bucket, with unlimited local disk.

        Raises: as `of`.
        """
        settings = cls.of(schema, buckets=buckets, compacts=False, memory=memory)
        spills = settings.spills or _spills(Options(schema.options), settings.buffer_bytes)
        spills = msgspec.structs.replace(spills, max_bytes=SpillSettings().max_bytes)
        return msgspec.structs.replace(settings, spills=spills)


def _spills(options: Options, buffer_bytes: int) -> SpillSettings:
    """The settings of spilling; no run is larger than a part of the buffer."""
    found = SpillSettings.of(options)
    return msgspec.structs.replace(found, run_bytes=min(found.run_bytes, buffer_bytes // 4))
