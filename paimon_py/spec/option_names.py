"""Known option names, and unknown ones that are probably misspelled.

Unknown options are accepted, as in Java; a name that is nearly a known one is refused with the correct name, because it
would be ignored silently.

Source: names of Java's `CoreOptions`, `FlinkConnectorOptions`, `SparkConnectorOptions`, `IcebergOptions` from
release 0.5 to main of August 2026.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Mapping, Sequence

from paimon_py.errors import OptionError
from paimon_py.spec.option_rows import ROWS
from paimon_py.spec.option_rows.kinds import MAP

_SHOWN = 5
"""The maximum number of names in a message."""
FIELDS_PREFIX = "fields."
DEFAULT_AGGREGATE = "fields.default-aggregate-function"

FALLBACKS: dict[str, tuple[str, ...]] = {
    "ignore-delete": ("first-row.ignore-delete", "deduplicate.ignore-delete", "partial-update.ignore-delete"),
    "variant.shreddingSchema": ("parquet.variant.shreddingSchema",),
    "snapshot.clean-empty-directories": ("snapshot.expire.clean-empty-directories",),
    "write-only": ("write.compaction-skip",),
    "write.batch-size": ("orc.write.batch-size",),
    "scan.mode": ("log.scan",),
    "scan.timestamp-millis": ("log.scan.timestamp-millis",),
    "lookup-wait": ("changelog-producer.lookup-wait",),
    "file-operation.thread-num": ("delete-file.thread-num",),
    "clustering.columns": ("sink.clustering.by-columns",),
    "clustering.strategy": ("sink.clustering.strategy",),
    "blob-descriptor-field": ("blob.stored-descriptor-fields",),
    "format-table.file.compression": ("file.compression",),
}
"""Older names of options, which are still recognised."""

FIELD_OPTIONS = (
    "aggregate-function",
    "sequence-group",
    "ignore-retract",
    "distinct",
    "list-agg-delimiter",
    "nested-key",
    "nested-key-null-strategy",
    "nested-sequence-field",
    "count-limit",
    "ts-field",
    "stats-mode",
    "map.storage-layout",
    "map.shared-shredding.max-columns",
    "map.shared-shredding.column-placement-policy",
)
"""The possible suffixes of `fields.<column>.`."""

_OF_ENGINES = """
    add-column-before-partition auto-create-if-not-exists blob-external-storage-field blob-external-storage-path
    changelog-producer.compaction-interval changelog.precommit-compact changelog.precommit-compact.buffer-size
    changelog.precommit-compact.thread-num commit.custom-listeners compaction.bucket-distribution-strategy
    compaction.early-max.file-num compaction.max.file-num compression end-input.watermark
    filesystem.job-level-settings.enabled format-table.repair.collect-statistics format-table.statistics.parallelism
    legacy-timestamp-mapping.enabled log.changelog-mode log.consistency log.format log.ignore-delete log.key.format
    log.scan.remove-normalize log.system log.system.partitions log.system.replication lookup.async
    lookup.async-thread-number lookup.bootstrap-parallelism lookup.cache lookup.dynamic-partition
    lookup.dynamic-partition.refresh-interval lookup.dynamic-partition.refresh.async lookup.local-file-type
    lookup.refresh.async lookup.refresh.async.pending-snapshot-count lookup.refresh.full-load-threshold
    lookup.refresh.time-periods-blacklist metadata.iceberg-compatible object-location
    partition.idle-time-to-done partition.mark-done-action.http.timeout partition.mark-done-action.mode
    partition.mark-done.recover-from-state partition.time-interval precommit-compact read.allow.fullScan read.changelog
    read.shuffle-bucket-with-partition read.stream.maxBytesPerTrigger read.stream.maxFilesPerTrigger
    read.stream.maxRowsPerTrigger read.stream.maxTriggerDelayMs read.stream.minRowsPerTrigger
    record-level.time-field-type requiredSparkConfsCheck.enabled scan.bounded scan.dedicated-split-generation
    scan.infer-parallelism scan.infer-parallelism.max scan.max-snapshot.count scan.parallelism scan.partitions
    scan.push-down scan.remove-normalize scan.split-enumerator.batch-size scan.split-enumerator.mode
    scan.watermark.alignment.group scan.watermark.alignment.max-drift scan.watermark.alignment.update-interval
    scan.watermark.emit.strategy scan.watermark.idle-timeout sequence.auto-padding sink.clustering.sample-factor
    sink.clustering.sort-in-cluster sink.committer-cpu sink.committer-memory sink.committer-operator-chaining
    sink.coordinator-commit.enabled sink.cross-partition.managed-memory sink.key-only-deletes.enabled
    sink.managed.writer-buffer-memory sink.operator-uid.suffix sink.parallelism sink.savepoint.auto-tag
    sink.use-managed-memory-allocator sink.writer-coordinator.cache-expire-after-access
    sink.writer-coordinator.cache-memory sink.writer-coordinator.cache-soft-values sink.writer-coordinator.enabled
    sink.writer-coordinator.page-size sink.writer-coordinator.prefetch-manifests sink.writer-cpu sink.writer-memory
    sink.writer-refresh-detectors source.checkpoint-align.enabled source.checkpoint-align.timeout
    source.operator-uid.suffix source.split.target-size-with-column-pruning streaming-compact streaming-read-mode
    streaming-read.shuffle-bucket-with-partition unaware-bucket.compaction.parallelism unaware-bucket.no-shuffle
    upsert-key vector-search.lateral-join.parallelism write-manifest-cache write-mode
    write.data-evolution.update-conflict-retry.max-attempts write.data-evolution.update-conflict-retry.wait-ms
    write.hive-style-dynamic-partition.enabled write.merge-schema write.merge-schema.explicit-cast
    write.merge-schema.type-widening write.use-v2-write
    owner provider connector location external comment transient_lastDdlTime
"""

FOREIGN_PREFIXES = (
    "avro.",
    "csv.",
    "dfs.",
    "fs.",
    "gs.",
    "hadoop.",
    "hive.",
    "json.",
    "orc.",
    "oss.",
    "parquet.",
    "s3.",
    "spark.",
    "flink.",
)
"""Prefixes of options of file systems, file formats and engines; these names are never checked."""

_INDEX_PREFIXES = ("file-index.bloom-filter.", "file-index.bitmap.", "file-index.bsi.", "file-index.range-bitmap.")
"""Prefixes that are followed by a column name; `file_indexes` checks the rest."""


@functools.lru_cache(maxsize=1)
def known_names() -> frozenset[str]:
    """Every option name of any release."""
    rows = (row[0] for row in ROWS)
    older = (name for names in FALLBACKS.values() for name in names)
    return frozenset((*rows, *older, *_OF_ENGINES.split()))


def check_names(options: Mapping[str, str]) -> None:
    """Refuse option names that are nearly, but not exactly, a known option.

    Raises:
        OptionError: the message names the option that was probably meant.
    """
    for name in options:
        if not isinstance(name, str):
            raise OptionError(f"an option's name is a string, not {name!r}", option=str(name))
        meant = suggestion(name)
        if meant is not None:
            raise OptionError(f"option {name!r} does not exist; did you mean {meant!r}?", option=name)


@functools.lru_cache(maxsize=1024)
def suggestion(name: str) -> str | None:
    """The known option that is most similar to an unknown name; None if the name is known or not similar to any."""
    known = known_names()
    if name in known or name.startswith((*FOREIGN_PREFIXES, *_INDEX_PREFIXES)):
        return None
    if name.startswith(FIELDS_PREFIX):
        return _suggest_field_option(name)
    if any(name.startswith(row[0] + ".") for row in ROWS if row[1] == MAP):
        return None
    return nearest(name, known)


def did_you_mean(name: str, columns: Sequence[str]) -> str:
    """The part of a message that suggests a column of a similar name; empty if there is none."""
    plain = {_plain(column): column for column in columns}
    near = plain.get(_plain(name)) or next(iter(difflib.get_close_matches(name, columns, n=1)), None)
    return "" if near is None else f"; did you mean {near!r}?"


def near_text(name: str, known: Sequence[str], what: str) -> str:
    """The part of a message that names what there is instead: a similar name, or the first few names."""
    near = did_you_mean(name, known)
    more = ", …" if len(known) > _SHOWN else ""
    return near or (f"; its {what} are {', '.join(known[:_SHOWN])}{more}" if known else f"; it has no {what}")


def _suggest_field_option(name: str) -> str | None:
    if name.endswith(tuple("." + option for option in FIELD_OPTIONS)):
        return None
    if "." not in name[len(FIELDS_PREFIX) :]:
        return nearest(name, frozenset((DEFAULT_AGGREGATE,)))
    head, _, last = name.rpartition(".")
    meant = nearest(last, frozenset(option for option in FIELD_OPTIONS if "." not in option))
    return None if meant is None else f"{head}.{meant}"


def nearest(name: str, known: frozenset[str]) -> str | None:
    """The known name that is nearly `name`; None if there is none."""
    plain, letters = _plain(name), set(name)
    best: tuple[int, str] | None = None
    for candidate in sorted(known):
        if _plain(candidate) == plain:
            return candidate
        allowed = _distance_max(min(len(candidate), len(name)))
        if abs(len(candidate) - len(name)) > allowed or len(letters ^ set(candidate)) > 2 * allowed:
            continue
        distance = edit_distance(name, candidate)
        if _only_swapped(name, candidate):
            distance = 1
        elif distance > allowed or len(candidate) < 6:
            continue
        if best is None or distance < best[0]:
            best = (distance, candidate)
    return None if best is None else best[1]


def _distance_max(length: int) -> int:
    return 1 if length < 10 else 2


def _plain(name: str) -> str:
    return "".join(char for char in name.lower() if char.isalnum())


def _only_swapped(name: str, candidate: str) -> bool:
    different = [i for i, (a, b) in enumerate(zip(name, candidate, strict=False)) if a != b]
    return (
        len(name) == len(candidate)
        and len(different) == 2
        and different[1] == different[0] + 1
        and name[different[0]] == candidate[different[1]]
        and name[different[1]] == candidate[different[0]]
    )


def edit_distance(a: str, b: str) -> int:
    """The number of insertions, deletions, replacements and swaps of neighbours that turn one string into the other."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        next_row = [i]
        for j, y in enumerate(b, 1):
            cost = min(row[j] + 1, next_row[j - 1] + 1, row[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, before[j - 2] + 1)
            next_row.append(cost)
        before, row = row, next_row
    return row[-1]
