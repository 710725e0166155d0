"""The options of catalogs, one row each: name, values, default, description, and support in paimon_py.

`docs/site/options.py` generates a page from the rows.

Source: Java `CatalogOptions`, `HiveCatalogOptions`, `JdbcCatalogOptions`, `RESTCatalogOptions`, release 2.0 and main of
August 2026.
"""

from __future__ import annotations

from typing import TypeAlias

Row: TypeAlias = tuple[str, str, str | None, str, str]
"""Name, values, default (None: none), description, and support in paimon_py."""

FOLLOWED = "followed"
_CACHE = "no effect: configures Java's caches"
_NO_BLOCKS = "no effect: no file blocks are cached locally"
_BOOL, _TEXT, _SIZE, _TIME, _INT = "true or false", "text", "size, `64 mb`", "time, `10 min`", "whole number"

OF_ALL_ROWS: tuple[Row, ...] = (
    ("warehouse", _TEXT, None, "Directory or URL of the warehouse; for a REST catalog, its name on the server.",
     "followed; also the first argument of `Catalog.open`"),
    ("metastore", "`filesystem` `hive` `jdbc` `rest`", "filesystem", "Where the names of tables are stored.",
     "followed; other kinds are refused"),
    ("uri", _TEXT, None, "Address of the metastore, the database or the server.", "followed: hive, jdbc, rest"),
    ("table.type", "`managed` `external`", "managed", "`managed`: dropping a new table deletes its data.",
     "followed: hive"),
    ("lock.enabled", _BOOL, "true on object stores", "Hold a lock of the catalog while a snapshot is published.",
     "followed: hive, jdbc; `true` is refused by filesystem, which has no lock"),
    ("lock.type", _TEXT, None, "A lock other than the catalog's own.", "refused: hive, jdbc"),
    ("lock-check-max-sleep", _TIME, "8 s", "Maximum pause between two attempts to get the lock.",
     "followed: hive, jdbc"),
    ("lock-acquire-timeout", _TIME, "8 min", "Maximum time to wait for the lock, and to hold it.",
     "followed: hive, jdbc"),
    ("client-pool-size", _INT, "2", "Maximum number of idle connections.", "followed: hive, jdbc"),
    ("sync-all-properties", _BOOL, "true", "Copy all options of tables to the metastore.", "followed: hive, jdbc"),
    ("case-sensitive", _BOOL, None, "Whether names may contain upper-case letters.",
     "`true` is refused by hive; no effect elsewhere: names are stored as given"),
    ("format-table.enabled", _BOOL, "true", "Show tables of other formats in a Hive metastore.",
     "`true` is refused by hive; no effect elsewhere: only Paimon tables are listed"),
    ("cache-enabled", _BOOL, "true", "Cache databases, tables, manifests and partitions in memory.", _CACHE),
    ("cache.expire-after-access", _TIME, "10 min", "Lifetime of a cache entry after its last use.", _CACHE),
    ("cache.expire-after-write", _TIME, "30 min", "Lifetime of a cache entry after it was read.", _CACHE),
    ("cache.partition.max-num", _INT, "0", "Maximum number of cached partitions.", _CACHE),
    ("cache.manifest.small-file-memory", _SIZE, "128 mb", "Memory for cached small manifests.", _CACHE),
    ("cache.manifest.small-file-threshold", _SIZE, "1 mb", "Maximum size of a small manifest.", _CACHE),
    ("cache.manifest.max-memory", _SIZE, None, "Memory for all cached manifests.", _CACHE),
    ("cache.manifest.soft-values", _BOOL, "true", "Let the JVM evict manifests if memory runs low.", _CACHE),
    ("cache.snapshot.max-num-per-table", _INT, "20", "Maximum number of cached snapshots per table.", _CACHE),
    ("cache.deletion-vectors.max-num", _INT, "100000", "Maximum number of cached deletion vectors.",
     _CACHE),
    ("catalog-options-table.enabled", _BOOL, "false", "Offer the system table `sys.catalog_options`.",
     "no effect: paimon_py does not have this table"),
    ("resolving-file-io.enabled", _BOOL, "false", "Open each external path with the store of its scheme.",
     "no effect: external paths are always opened with the store of their scheme"),
    ("file-io.allow-cache", _BOOL, "true", "Share connections to stores within a JVM.",
     "no effect: connections belong to a catalog or table"),
    ("local-cache.enabled", _BOOL, "false", "Cache file blocks that were read.", _NO_BLOCKS),
    ("local-cache.dir", _TEXT, None,
     "Directory of cached blocks; without it, blocks are cached in memory.", _NO_BLOCKS),
    ("local-cache.max-size", _SIZE, None, "Maximum size of the cache.", _NO_BLOCKS),
    ("local-cache.block-size", _SIZE, "1 mb", "Size of a cached block.", _NO_BLOCKS),
    ("local-cache.whitelist", _TEXT, "meta,global-index", "Kinds of files that are cached.", _NO_BLOCKS),
)  # fmt: skip
"""Options of all catalogs in Java."""

HIVE_ROWS: tuple[Row, ...] = (
    ("hive-conf-dir", _TEXT, None, "Local directory of `hive-site.xml`, which supplies missing options.",
     FOLLOWED),
    ("hadoop-conf-dir", _TEXT, None, "Local directory of `core-site.xml` and `hdfs-site.xml`.",
     "followed: for `hdfs://`"),
    ("metastore.client.class", _TEXT, "Hive's own client", "Java class of the metastore client.",
     "other classes are refused: only Hive's own protocol is supported"),
    ("location-in-properties", _BOOL, "false",
     "Store locations in table properties, for metastores that cannot reach the store.",
     FOLLOWED),
    ("client-pool-cache.eviction-interval-ms", _INT, "300000",
     "Lifetime of an idle connection, in milliseconds.",
     FOLLOWED),
    ("client-pool-cache.keys", _TEXT, None, "Which catalogs of a JVM share connections.",
     "refused: catalogs do not share connections"),
    ("alter-table-cascade", _BOOL, "true", "Change the columns of partitions together with those of the table.",
     FOLLOWED),
    ("hive.skip-update-stats", _BOOL, "false",
     "Ask the metastore not to recompute file statistics when a table changes.",
     FOLLOWED),
)  # fmt: skip

JDBC_ROWS: tuple[Row, ...] = (
    ("catalog-key", _TEXT, "jdbc", "Name of the catalog, if the database contains several.", FOLLOWED),
    ("lock-key-max-length", _INT, "255",
     "Maximum length of a lock's name, which consists of catalog, database and table.", FOLLOWED),
    ("jdbc.user", _TEXT, None,
     "User of the database. Any other `jdbc.<parameter>` is a parameter of the URL.", FOLLOWED),
    ("jdbc.password", _TEXT, None, "Password for the database.", FOLLOWED),
)  # fmt: skip

REST_ROWS: tuple[Row, ...] = (
    ("prefix", _TEXT, None, "Prefix of all paths on the server, which the server itself supplies.", FOLLOWED),
    ("token.provider", "`bear` `dlf`", None, "How requests are authenticated.", "followed; others are refused"),
    ("token", _TEXT, None, "The bearer token.", FOLLOWED),
    ("token.provider.path", _TEXT, None, "File with the bearer token, read for each request.", FOLLOWED),
    ("data-token.enabled", _BOOL, "false", "Request credentials for each table's data from the server.", FOLLOWED),
    ("header.User-Agent", _TEXT, "paimon_py", "The User-Agent header. `header.<name>` sets any other header.",
     FOLLOWED),
    ("dlf.region", _TEXT, "from the address", "Region in the signatures.", FOLLOWED),
    ("dlf.access-key-id", _TEXT, None, "ID of the access key.", FOLLOWED),
    ("dlf.access-key-secret", _TEXT, None, "Secret of the access key.", FOLLOWED),
    ("dlf.security-token", _TEXT, None, "Token of a temporary access key.", FOLLOWED),
    ("dlf.token-path", _TEXT, None, "File with access keys, read again an hour before they expire.", FOLLOWED),
    ("dlf.token-loader", _TEXT, None, "Source of the keys: `local_file`, or `ecs` for the role of the machine.",
     "followed; others are refused"),
    ("dlf.token-ecs-metadata-url", _TEXT, "Alibaba Cloud's",
     "Address of the metadata service that returns the keys of the role.",
     FOLLOWED),
    ("dlf.token-ecs-role-name", _TEXT, None,
     "Name of the role; by default, the metadata service is asked for it.", FOLLOWED),
    ("dlf.oss-endpoint", _TEXT, None, "OSS endpoint for the data of tables.", FOLLOWED),
    ("dlf.signing-algorithm", "`default` `openapi`", "by the address", "Algorithm that signs requests.", FOLLOWED),
    ("io-cache.enabled", _BOOL, "false", "Cache files with Alibaba's file system.", _NO_BLOCKS),
    ("io-cache.whitelist-path", _TEXT, "bucket,manifest,index", "Paths that are cached.", _NO_BLOCKS),
    ("io-cache.policy", _TEXT, None, "What is cached: metadata, reads, writes.", _NO_BLOCKS),
)  # fmt: skip

BY_KIND: dict[str, tuple[Row, ...]] = {"filesystem": (), "hive": HIVE_ROWS, "rest": REST_ROWS, "jdbc": JDBC_ROWS}
"""Options of each kind of catalog."""
