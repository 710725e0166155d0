"""The settings of a writer: the options of its table, unless the caller overrides them."""

from __future__ import annotations

import msgspec

from paimon_py.lsm.spill import SpillSettings
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema

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
    def of(cls, schema: TableSchema, *, buckets: int | None = None, compacts: bool | None = None) -> WriterSettings:
        """The settings of a table; the arguments override its options `bucket` and `write-only`.

        Raises: OptionError if an option has an invalid value.
        """
        options = Options(schema.options)
        return cls(
            buckets=buckets,
            compacts=not options.get_bool("write-only") if compacts is None else compacts,
            buffer_bytes=min(options.get_memory("write-buffer-size"), _BUFFER_MAX),
            spills=SpillSettings.of(options) if options.get_bool("write-buffer-spillable") else None,
        )

    @property
    def without_changelog(self) -> WriterSettings:
        """The settings of a writer whose changes are committed as an overwrite."""
        return msgspec.structs.replace(self, keeps_changelog=False)

    @classmethod
    def in_one_run(cls, schema: TableSchema, buckets: int | None = None) -> WriterSettings:
        """The settings of writers that produce one sorted run of all rows of a bucket, with unlimited local disk.

        Raises: as `of`.
        """
        spills = msgspec.structs.replace(SpillSettings.of(Options(schema.options)), max_bytes=SpillSettings().max_bytes)
        return msgspec.structs.replace(cls.of(schema, buckets=buckets, compacts=False), spills=spills)
