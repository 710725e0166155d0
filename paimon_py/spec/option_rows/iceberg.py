"""The table options for Iceberg metadata.

Source: docs/format.md §25; Java `IcebergOptions`, release 2.0.
"""

from __future__ import annotations

from paimon_py.spec.option_rows.kinds import BOOL, INT, TEXT, Row

_REST = "hive-catalog|rest-catalog"

ROWS: tuple[Row, ...] = (
    ("metadata.iceberg.storage", f"disabled|table-location|hadoop-catalog|{_REST}", "disabled",
     "Write Iceberg metadata after each commit: next to the table, or where a Hadoop catalog of Iceberg looks."),
    ("metadata.iceberg.storage-location", "table-location|catalog-location", None,
     "Where the metadata is stored: `<table>/metadata`, or `<warehouse>/iceberg/<database>/<table>/metadata`; default"
     " by storage."),
    ("metadata.iceberg.format-version", INT, "2", "Version of the Iceberg format, 2 or 3; can be raised."),
    ("metadata.iceberg.manifest-compression", TEXT, "snappy", "Avro codec of Iceberg manifests and manifest lists."),
    ("metadata.iceberg.manifest-legacy-version", BOOL, "false",
     "Name fields of Iceberg manifest lists as readers of Iceberg 1.4 do."),
    ("metadata.iceberg.compaction.min.file-num", INT, "10", "Small Iceberg manifests from which they are merged."),
    ("metadata.iceberg.compaction.max.file-num", INT, "50",
     "Small Iceberg manifests from which they are merged whatever their size."),
    ("metadata.iceberg.delete-after-commit.enabled", BOOL, "true", "Delete old Iceberg metadata files."),
    ("metadata.iceberg.previous-versions-max", INT, "0", "Number of old Iceberg metadata files to keep."),
    ("metadata.iceberg.database", TEXT, None, "Hive and REST catalogs of Iceberg: name of the database."),
    ("metadata.iceberg.table", TEXT, None, "Hive and REST catalogs of Iceberg: name of the table."),
    ("metadata.iceberg.uri", TEXT, None, "Hive catalogs of Iceberg: address of the metastore."),
    ("metadata.iceberg.hive-conf-dir", TEXT, None, "Hive catalogs of Iceberg: directory of hive-site.xml."),
    ("metadata.iceberg.hadoop-conf-dir", TEXT, None, "Hive catalogs of Iceberg: directory of core-site.xml."),
    ("metadata.iceberg.hive-client-class", TEXT, "org.apache.hadoop.hive.metastore.HiveMetaStoreClient",
     "Hive catalogs of Iceberg: class of the client in Java."),
    ("metadata.iceberg.glue.skip-archive", BOOL, "false", "Hive catalogs of Iceberg: do not archive in AWS Glue."),
    ("metadata.iceberg.hive-skip-update-stats", BOOL, "false",
     "Hive catalogs of Iceberg: do not update statistics in Hive."),
)  # fmt: skip
