"""The names of all numbers, and what they mean."""

from __future__ import annotations

from paimon_py.metrics.samples import MetricFamily

_KIND = ("table", "commit_kind")
_STORE = ("operation", "outcome")

COMMITS = MetricFamily("paimon_commits_total", "counter", "Snapshots that were published.", _KIND)
ATTEMPTS = MetricFamily("paimon_commit_attempts_total", "counter", "Attempts at publishing snapshots.")
RACES = MetricFamily("paimon_commit_races_total", "counter", "Attempts that another writer won.")
FAILURES = MetricFamily(
    "paimon_commit_failures_total", "counter", "Commits that failed: conflict, given-up or unknown.",
    ("table", "outcome"),
)  # fmt: skip
COMMIT_SECONDS = MetricFamily("paimon_commit_seconds", "histogram", "Time from the first attempt to publication.")
FILES_ADDED = MetricFamily("paimon_files_added_total", "counter", "Data files that snapshots added.", _KIND)
FILES_DELETED = MetricFamily("paimon_files_deleted_total", "counter", "Data files that snapshots deleted.", _KIND)
ROWS_ADDED = MetricFamily("paimon_rows_added_total", "counter", "Rows in files that snapshots added.", _KIND)
ROWS_DELETED = MetricFamily("paimon_rows_deleted_total", "counter", "Rows in files that snapshots deleted.", _KIND)
BYTES_ADDED = MetricFamily("paimon_bytes_added_total", "counter", "Bytes of files that snapshots added.", _KIND)
BYTES_DELETED = MetricFamily("paimon_bytes_deleted_total", "counter", "Bytes of files that snapshots deleted.", _KIND)
CHANGELOG_ROWS = MetricFamily("paimon_changelog_rows_total", "counter", "Rows in changelog files that snapshots added.")

COMPACTIONS = MetricFamily("paimon_compactions_total", "counter", "Buckets that were compacted.")
COMPACTION_FILES = MetricFamily("paimon_compaction_files_total", "counter", "Files that compactions merged.")
COMPACTION_BYTES = MetricFamily("paimon_compaction_bytes_total", "counter", "Bytes that compactions merged.")
COMPACTION_SECONDS = MetricFamily("paimon_compaction_seconds", "histogram", "Time to compact one bucket.")

EXPIRED = MetricFamily(
    "paimon_expired_total", "counter", "Snapshots, changelogs, tags, partitions and consumers that expired.",
    ("table", "what"),
)  # fmt: skip
EXPIRED_FILES = MetricFamily("paimon_expired_files_total", "counter", "Files that expiry deleted.", ("table", "what"))
ORPHANS = MetricFamily("paimon_orphans_deleted_total", "counter", "Orphan files that were deleted.")
ORPHAN_BYTES = MetricFamily("paimon_orphan_bytes_deleted_total", "counter", "Bytes of orphan files that were deleted.")
TAGS = MetricFamily("paimon_tag_changes_total", "counter", "Tags that were changed.", ("table", "action"))
ROLLBACKS = MetricFamily("paimon_rollbacks_total", "counter", "Rollbacks and fast-forwards.", ("table", "action"))
SCHEMAS = MetricFamily("paimon_schema_changes_total", "counter", "Schemas that were published.")

STORE_CALLS = MetricFamily("paimon_store_calls_total", "counter", "Calls to the store.", _STORE)
STORE_BYTES = MetricFamily(
    "paimon_store_bytes_total", "counter", "Bytes that calls for whole files and ranges moved.", _STORE
)
STORE_SECONDS = MetricFamily("paimon_store_seconds", "histogram", "Time of calls to the store.", ("operation",))

SNAPSHOT_ID = MetricFamily("paimon_latest_snapshot_id", "gauge", "Id of the latest snapshot.")
SNAPSHOT_AGE = MetricFamily("paimon_snapshot_age_seconds", "gauge", "Age of the latest snapshot when it was measured.")
SNAPSHOTS = MetricFamily("paimon_snapshots", "gauge", "Snapshots that are left.")
TAG_COUNT = MetricFamily("paimon_tags", "gauge", "Tags.")
LIVE_FILES = MetricFamily("paimon_live_files", "gauge", "Data files of the latest snapshot.")
LIVE_BYTES = MetricFamily("paimon_live_bytes", "gauge", "Bytes of these files.")
LIVE_ROWS = MetricFamily("paimon_live_rows", "gauge", "Rows in these files.")
LEVEL_FILES = MetricFamily("paimon_level_files", "gauge", "Data files by level.", ("table", "level"))
LEVEL_BYTES = MetricFamily("paimon_level_bytes", "gauge", "Bytes of data files by level.", ("table", "level"))
LEVEL_0_MAX = MetricFamily("paimon_level0_files_max", "gauge", "Most files on level 0 of one bucket.")
RUNS_MAX = MetricFamily("paimon_sorted_runs_max", "gauge", "Most sorted runs that a reader merges in one bucket.")
BACKLOG_FILES = MetricFamily("paimon_compaction_backlog_files", "gauge", "Files that compact() would merge now.")
BACKLOG_BYTES = MetricFamily("paimon_compaction_backlog_bytes", "gauge", "Bytes that compact() would merge now.")
CONSUMER_LAG = MetricFamily(
    "paimon_consumer_lag_snapshots", "gauge", "Snapshots that a consumer has not read.", ("table", "consumer")
)  # fmt: skip

FAMILIES: tuple[MetricFamily, ...] = (
    COMMITS, ATTEMPTS, RACES, FAILURES, COMMIT_SECONDS, FILES_ADDED, FILES_DELETED, ROWS_ADDED, ROWS_DELETED,
    BYTES_ADDED, BYTES_DELETED, CHANGELOG_ROWS, COMPACTIONS, COMPACTION_FILES, COMPACTION_BYTES, COMPACTION_SECONDS,
    EXPIRED, EXPIRED_FILES, ORPHANS, ORPHAN_BYTES, TAGS, ROLLBACKS, SCHEMAS, STORE_CALLS, STORE_BYTES, STORE_SECONDS,
    SNAPSHOT_ID, SNAPSHOT_AGE, SNAPSHOTS, TAG_COUNT, LIVE_FILES, LIVE_BYTES, LIVE_ROWS, LEVEL_FILES, LEVEL_BYTES,
    LEVEL_0_MAX, RUNS_MAX, BACKLOG_FILES, BACKLOG_BYTES, CONSUMER_LAG,
)  # fmt: skip
"""All names, in the order in which they are shown."""
