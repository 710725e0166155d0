"""Derives findings from facts: one pure function per check."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.doctor.facts import Facts
from paimon_py.doctor.finding import NOTE, PROBLEM, SEVERITIES, WARNING, Finding, bucket_label
from paimon_py.doctor.history_checks import HISTORY_CHECKS
from paimon_py.doctor.iceberg_checks import fresh_iceberg, right_iceberg, whole_iceberg
from paimon_py.doctor.option_checks import contradicting_options, senseless_option
from paimon_py.doctor.thresholds import RunLimits, has_many_manifests
from paimon_py.errors import OptionError
from paimon_py.metadata.manifest_merge import ManifestSettings
from paimon_py.spec.options import Options

Check = Callable[[Facts], Iterator[Finding]]

EXAMPLES = 10
"""The maximum number of places in a finding."""
CLOCK_MILLIS = 60_000
"""The tolerated difference between clocks."""
SKEW = 4
"""A bucket with this many times the mean number of rows is skewed."""
COMPACT = "table.compact()"
_ANEW = "table.write_arrow(table.scan().to_arrow(), overwrite={}), which rebuilds the index"


def examine(facts: Facts) -> list[Finding]:
    """All findings, the most severe first."""
    found = [finding for check in CHECKS for finding in _findings(check, facts)]
    once = dict.fromkeys(found)
    return sorted(once, key=lambda finding: SEVERITIES.index(finding.severity))


def _findings(check: Check, facts: Facts) -> list[Finding]:
    """The findings of a check; an option that is invalid for the check is a finding, too."""
    try:
        return list(check(facts))
    except OptionError as error:
        return [senseless_option(error.option, str(error))]


def missing_files(facts: Facts) -> Iterator[Finding]:
    """Check that all files exist."""
    paths = [one.path for one in facts.broken if one.damage is None]
    if paths:
        yield Finding(
            code="missing-files", severity=PROBLEM, figure=len(paths), places=tuple(paths[:EXAMPLES]),
            message=f"{_many(len(paths), 'file')} of the latest snapshot {_are(len(paths))} missing",
            mend="table.rollback_to(a snapshot or tag that can be read), or write the rows again",
        )  # fmt: skip


def damaged_files(facts: Facts) -> Iterator[Finding]:
    """Check that files match the metadata."""
    found = [f"{one.path}: {one.damage}" for one in facts.broken if one.damage is not None]
    if found:
        yield Finding(
            code="damaged-files", severity=PROBLEM, figure=len(found), places=tuple(found[:EXAMPLES]),
            message=f"{_many(len(found), 'file')} cannot be read, or {_do(len(found))} not match the metadata",
            mend="table.rollback_to(a snapshot or tag that can be read), or write the rows again",
        )  # fmt: skip


def repeated_keys(facts: Facts) -> Iterator[Finding]:
    """Check that no file contains a key twice, which only a deep check detects."""
    if facts.repeated:
        count = len(facts.repeated)
        yield Finding(
            code="repeated-keys", severity=PROBLEM, figure=count, places=facts.repeated[:EXAMPLES],
            message=f"{_many(count, 'file')} with the same key twice: readers return both rows",
            mend="table.write_arrow(table.scan().to_reader(), overwrite={}), which keeps the later row",
        )  # fmt: skip


def unmarked_rows(facts: Facts) -> Iterator[Finding]:
    """Check that deletion vectors cover the sorted runs that existed before deletion vectors were enabled."""
    if facts.unmarked:
        count = len(facts.unmarked)
        yield Finding(
            code="unmarked-rows", severity=PROBLEM, figure=count, places=facts.unmarked[:EXAMPLES],
            option="deletion-vectors.enabled", mend="table.compact(full=True)",
            message=f"deletion vectors were enabled over several sorted runs of {_many(count, 'bucket')}: "
            "readers may return older rows of a key in addition to the newest",
        )  # fmt: skip


def small_files(facts: Facts) -> Iterator[Finding]:
    """Check that append tables have no small files that a compaction would merge."""
    worst = _worst(facts.waiting, "file_count", 1)
    if len(worst):
        count = pc.sum(worst["file_count"]).as_py()
        yield Finding(
            code="small-files", severity=WARNING, figure=count, option="compaction.min.file-num", mend=COMPACT,
            message=f"{_many(count, 'file')} of {_buckets(worst)} wait to be merged",
            places=_places(worst, "file_count", "files"),
        )  # fmt: skip


def level_0(facts: Facts) -> Iterator[Finding]:
    """Check that level 0 has no more files than the limit at which writers wait."""
    limit = RunLimits.of(Options(facts.options)).stop
    worst = _worst(facts.buckets, "level0_count", limit + 1)
    if len(worst) and facts.is_keyed:
        most = _first(worst, "level0_count")
        yield Finding(
            code="level-0-pile-up", severity=WARNING, figure=most, option="num-sorted-run.stop-trigger", mend=COMPACT,
            message=f"up to {most:,} files on level 0 of {_buckets(worst)}; there should be at most {limit}",
            places=_places(worst, "level0_count", "files on level 0"),
        )  # fmt: skip


def read_amplification(facts: Facts) -> Iterator[Finding]:
    """Check how many sorted runs a reader merges in a bucket, averaged over the rows."""
    limits = RunLimits.of(Options(facts.options))
    rows = pc.sum(facts.buckets["record_count"]).as_py() or 0
    if not facts.is_keyed or not rows:
        return
    mean = pc.sum(pc.multiply(facts.buckets["record_count"], facts.buckets["run_count"])).as_py() / rows
    if limits.is_amplified(mean):
        worst = _worst(facts.buckets, "run_count", limits.trigger + 1)
        yield Finding(
            code="read-amplification", severity=WARNING, figure=round(mean, 1), mend=COMPACT,
            option="num-sorted-run.compaction-trigger",
            message=f"readers merge {mean:.1f} sorted runs per row; compactions begin at {limits.trigger}",
            places=_places(worst, "run_count", "sorted runs"),
        )  # fmt: skip


def skewed_buckets(facts: Facts) -> Iterator[Finding]:
    """Check that no bucket has far more rows than the others of its partition, if it fills at least one full file."""
    target = Options(facts.options).find_size("target-file-size") or (128 << 20)
    partitions = facts.buckets.group_by("partition", use_threads=False).aggregate(
        [("record_count", "sum"), ("total_buckets", "max")]
    )
    joined = facts.buckets.select(["partition", "bucket", "record_count", "file_size_in_bytes"]).join(
        partitions, "partition"
    )
    share = pc.divide(
        pc.multiply(pc.cast(joined["record_count"], pa.float64()), joined["total_buckets_max"]),
        pc.add(pc.cast(joined["record_count_sum"], pa.float64()), 1e-9),
    )
    joined = joined.append_column("share", share)
    skewed = pc.and_(pc.greater(joined["total_buckets_max"], 1), pc.greater_equal(joined["file_size_in_bytes"], target))
    worst = _worst(joined.filter(skewed), "share", min(SKEW, _half_of_all(facts)))
    if len(worst):
        most = _first(worst, "share")
        yield Finding(
            code="skewed-buckets", severity=WARNING, figure=round(most, 1), option="bucket-key",
            message=f"rows are skewed: {_buckets(worst)} with up to {most:.1f} times the mean number of rows",
            mend="table.rescale(another number of buckets), or a table with another bucket-key",
            places=tuple(f"{_label(row)}: {row['share']:.1f} times" for row in worst.slice(0, EXAMPLES).to_pylist()),
        )  # fmt: skip


def skewed_keys(facts: Facts) -> Iterator[Finding]:
    """Check that no key is repeatedly written in files of its own."""
    limit = RunLimits.of(Options(facts.options)).stop
    worst = _worst(facts.buckets, "repeated_count", limit + 1)
    if len(worst) and facts.is_keyed:
        most = _first(worst, "repeated_count")
        yield Finding(
            code="skewed-keys", severity=NOTE, figure=most, option="write-buffer-size", mend=COMPACT,
            message=f"up to {most:,} files of {_buckets(worst)} contain only the same key: commit more rows at a time",
            places=_places(worst, "repeated_count", "files of one key"),
        )  # fmt: skip


def grown_manifests(facts: Facts) -> Iterator[Finding]:
    """Check that plans read few manifests, and few entries that cancel each other."""
    found, settings = facts.manifests, ManifestSettings.of(Options(facts.options))
    if has_many_manifests(found.small, settings):
        yield Finding(
            code="many-manifests", severity=WARNING, figure=found.small, option="manifest.merge-min-count",
            message=f"{found.small:,} of {_many(found.count, 'manifest')} are small", mend="table.compact_manifests()",
        )  # fmt: skip
    dead = found.entries - facts.live_files
    if found.size_bytes > settings.full_compaction_bytes and dead > facts.live_files:
        yield Finding(
            code="dead-entries", severity=WARNING, figure=dead, option="manifest.full-compaction-threshold-size",
            message=f"{dead:,} of {found.entries:,} entries in manifests refer to deleted files",
            mend="table.compact_manifests()",
        )  # fmt: skip


def old_snapshots(facts: Facts) -> Iterator[Finding]:
    """Check that snapshots expire."""
    limit = Options(facts.options).get_int("snapshot.expire.limit")
    if facts.expirable > limit:
        yield Finding(
            code="old-snapshots", severity=WARNING, figure=facts.expirable, option="snapshot.num-retained.max",
            message=f"{facts.expirable:,} of {_many(facts.snapshot_count, 'snapshot')} could have expired",
            mend="table.expire_snapshots()",
        )  # fmt: skip


def much_held(facts: Facts) -> Iterator[Finding]:
    """Check that old snapshots and tags do not keep more bytes than the latest snapshot has."""
    target = Options(facts.options).find_size("target-file-size") or (128 << 20)
    held = [one for one in facts.holders if one.held_bytes > max(facts.live_bytes, target)]
    for kind, option, mend in (
        ("snapshot", "snapshot.num-retained.max", "table.expire_snapshots(retain_max=…)"),
        ("tag", "tag.default-time-retained", "table.delete_tag(name), or table.expire_tags()"),
    ):
        found = sorted((one for one in held if one.kind == kind), key=lambda one: -one.held_bytes)
        if found:
            most = found[0].held_bytes
            yield Finding(
                code=f"{kind}s-hold-much", severity=WARNING, figure=most, option=option, mend=mend,
                message=f"{kind} {found[0].name} keeps {most:,} bytes in addition to the latest snapshot, which has "
                f"{facts.live_bytes:,}",
                places=tuple(f"{kind} {one.name}: {one.held_bytes:,} bytes" for one in found[:EXAMPLES]),
            )  # fmt: skip


def idle_consumers(facts: Facts) -> Iterator[Finding]:
    """Check that no consumer keeps more snapshots than the options retain."""
    least = Options(facts.options).get_int("snapshot.num-retained.min")
    found = sorted((one for one in facts.followers if one.behind > least), key=lambda one: -one.behind)
    if found and facts.expirable:
        yield Finding(
            code="consumers-behind", severity=WARNING, figure=found[0].behind, option="consumer.expiration-time",
            message=f"consumer {found[0].name!r} is {found[0].behind:,} snapshots behind and keeps them from expiry",
            mend="table.delete_consumer(name), or table.expire_consumers(older_than=…)",
            places=tuple(f"{one.name}: {one.behind:,} behind" for one in found[:EXAMPLES]),
        )  # fmt: skip


def orphans(facts: Facts) -> Iterator[Finding]:
    """Check for files that nothing references."""
    if facts.orphans is not None and facts.orphans.files:
        found = facts.orphans
        yield Finding(
            code="orphans", severity=NOTE, figure=found.files, mend="table.remove_orphans(dry_run=False)",
            message=f"{_many(found.files, 'orphan file')} of {found.size_bytes:,} bytes in total",
            places=found.examples[:EXAMPLES],
        )  # fmt: skip


def hash_index(facts: Facts) -> Iterator[Finding]:
    """Check that the hash index of each dynamic bucket contains all keys, and not many more.

    A sorted run contains each key once; n hashes of 32 bits have about n²/2³³ collisions.
    """
    if not facts.is_dynamic:
        return
    run, hashes = facts.buckets["largest_run"], pc.fill_null(facts.buckets["hash_count"], 0)
    shared = pc.add(1, pc.shift_right(pc.multiply(run, run), 32))
    lacking = facts.buckets.append_column("lacking", pc.subtract(pc.subtract(run, hashes), shared))
    worst = _worst(lacking, "lacking", 1)
    if len(worst):
        yield Finding(
            code="hash-index-lacks-keys", severity=PROBLEM, figure=pc.sum(worst["lacking"]).as_py(),
            option="dynamic-bucket.target-row-num",
            message=f"the hash index of {_buckets(worst)} lacks keys of the bucket: new versions may go to another "
            "bucket, so that a key exists twice",
            mend=_ANEW,
            places=_places(worst, "lacking", "keys at least"),
        )  # fmt: skip
    stale = facts.buckets.append_column("stale", pc.subtract(hashes, pc.multiply(2, facts.buckets["record_count"])))
    worst = _worst(stale, "stale", 1000)
    if len(worst):
        yield Finding(
            code="hash-index-stale", severity=NOTE, figure=pc.sum(worst["stale"]).as_py(),
            option="dynamic-bucket.target-row-num",
            message=f"the hash index of {_buckets(worst)} contains deleted keys, so that a bucket counts as full",
            mend=_ANEW,
            places=_places(worst, "stale", "hashes"),
        )  # fmt: skip


def clocks(facts: Facts) -> Iterator[Finding]:
    """Check that committers, the store and this machine agree about the time."""
    pairs = list(zip(facts.commits, facts.commits[1:], strict=False))
    back = [(after.snapshot_id, before.millis - after.millis) for before, after in pairs]
    stored = [one for one in facts.commits if one.stored_millis is not None]
    ahead = [(one.snapshot_id, one.millis - (one.stored_millis or 0)) for one in stored]
    future = [(one.snapshot_id, one.millis - facts.now_millis) for one in facts.commits]
    for found, said in (
        (back, "has an earlier time than the one before: clocks of committers disagree"),
        (ahead, "has a later time than its file in the store: the committer's clock is ahead"),
        (future, "has a time in the future: the committer's clock is ahead of this machine's"),
    ):
        off = sorted((one for one in found if one[1] > CLOCK_MILLIS), key=lambda one: -one[1])
        if off:
            number, millis = off[0]
            yield Finding(
                code="clocks-disagree", severity=WARNING, figure=millis / 1000, option="snapshot.time-retained",
                message=f"snapshot {number} {said}, by {millis / 1000:,.0f} s",
                mend="set the clocks of the machines that write (NTP)",
                places=tuple(f"snapshot {one}: {late / 1000:,.0f} s" for one, late in off[:EXAMPLES]),
            )  # fmt: skip


CHECKS: tuple[Check, ...] = (
    missing_files, damaged_files, repeated_keys, unmarked_rows, small_files, level_0, read_amplification,
    skewed_buckets, skewed_keys, grown_manifests, old_snapshots, much_held, idle_consumers, orphans, hash_index, clocks,
    contradicting_options, *HISTORY_CHECKS, right_iceberg, fresh_iceberg, whole_iceberg,
)  # fmt: skip
"""All checks, in the order of findings with the same severity."""


def _half_of_all(facts: Facts) -> float:
    """The limit for skew: if there are too few buckets for four times the mean, one bucket with nearly all rows."""
    most = pc.max(facts.buckets["total_buckets"]).as_py() or 0
    return float(SKEW) if most > SKEW else 0.9 * most


def _worst(rows: pa.Table, name: str, least: float) -> pa.Table:
    return rows.filter(pc.greater_equal(rows[name], least)).sort_by([(name, "descending")])


def _first(rows: pa.Table, name: str) -> Any:
    return rows[name][0].as_py()


def _label(row: dict[str, Any]) -> str:
    return bucket_label(row["partition"], row["bucket"])


def _places(rows: pa.Table, name: str, what: str) -> tuple[str, ...]:
    return tuple(f"{_label(row)}: {row[name]:,} {what}" for row in rows.slice(0, EXAMPLES).to_pylist())


def _buckets(rows: pa.Table) -> str:
    return _many(len(rows), "bucket")


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _do(count: int) -> str:
    return "does" if count == 1 else "do"
