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
_CACHE = "no effect: sets up caches of Java"
_NO_BLOCKS = "no effect: blocks of files are not kept on local disks"
_BOOL, _TEXT, _SIZE, _TIME, _INT = "true or false", "text", "size, `64 mb`", "time, `10 min`", "whole number"

OF_ALL_ROWS: tuple[Row, ...] = (
    ("warehouse", _TEXT, None, "Directory or URL of the warehouse; its name at the server of a REST catalog.",
     "followed; `Catalog.open` takes it as first argument too"),
    ("metastore", "`filesystem` `hive` `jdbc` `rest`", "filesystem", "What keeps the names of tables.",
     "followed; other kinds are refused"),
    ("uri", _TEXT, None, "Address of the metastore, the database or the server.", "followed: hive, jdbc, rest"),
    ("table.type", "`managed` `external`", "managed", "Whether the data of a new table go when the table is dropped.",
     "followed: hive"),
    ("lock.enabled", _BOOL, "true on object stores", "Hold a lock of the catalog while a snapshot is published.",
     "followed: hive, jdbc; `true` is refused by filesystem, which has no lock"),
    ("lock.type", _TEXT, None, "Another kind of lock than the catalog's own.", "refused: hive, jdbc"),
    ("lock-check-max-sleep", _TIME, "8 s", "The longest pause between two attempts to get the lock.",
     "followed: hive, jdbc"),
    ("lock-acquire-timeout", _TIME, "8 min", "How long a commit waits for the lock, and a lock is held at most.",
     "followed: hive, jdbc"),
    ("client-pool-size", _INT, "2", "How many idle connections are kept.", "followed: hive, jdbc"),
    ("sync-all-properties", _BOOL, "true", "Copy all options of tables to the metastore.", "followed: hive, jdbc"),
    ("case-sensitive", _BOOL, None, "Whether names may have upper case letters.",
     "`true` is refused by hive; no effect elsewhere: names are kept as given"),
    ("format-table.enabled", _BOOL, "true", "Show tables of other formats in a Hive metastore.",
     "`true` is refused by hive; else no effect: only tables of Paimon are listed"),
    ("cache-enabled", _BOOL, "true", "Keep databases, tables, manifests and partitions in memory.", _CACHE),
    ("cache.expire-after-access", _TIME, "10 min", "How long after its last use an entry stays in memory.", _CACHE),
    ("cache.expire-after-write", _TIME, "30 min", "How long after it was read an entry stays in memory.", _CACHE),
    ("cache.partition.max-num", _INT, "0", "How many partitions stay in memory.", _CACHE),
    ("cache.manifest.small-file-memory", _SIZE, "128 mb", "Memory for small manifests.", _CACHE),
    ("cache.manifest.small-file-threshold", _SIZE, "1 mb", "Up to which size a manifest is small.", _CACHE),
    ("cache.manifest.max-memory", _SIZE, None, "Memory for all manifests.", _CACHE),
    ("cache.manifest.soft-values", _BOOL, "true", "Let the JVM take manifests out of memory.", _CACHE),
    ("cache.snapshot.max-num-per-table", _INT, "20", "How many snapshots of a table stay in memory.", _CACHE),
    ("cache.deletion-vectors.max-num", _INT, "100000", "How many entries of deletion vectors stay in memory.",
     _CACHE),
    ("catalog-options-table.enabled", _BOOL, "false", "Offer the system table `sys.catalog_options`.",
     "no effect: there is no such table"),
    ("resolving-file-io.enabled", _BOOL, "false", "Open external paths by their own scheme.",
     "no effect: external paths are always opened by their own scheme"),
    ("file-io.allow-cache", _BOOL, "true", "Keep connections to stores for the whole JVM.",
     "no effect: connections belong to a catalog or table"),
    ("local-cache.enabled", _BOOL, "false", "Keep blocks of files that were read.", _NO_BLOCKS),
    ("local-cache.dir", _TEXT, None, "Where blocks are kept; in memory otherwise.", _NO_BLOCKS),
    ("local-cache.max-size", _SIZE, None, "How much is kept.", _NO_BLOCKS),
    ("local-cache.block-size", _SIZE, "1 mb", "Size of a block.", _NO_BLOCKS),
    ("local-cache.whitelist", _TEXT, "meta,global-index", "Kinds of files that are kept.", _NO_BLOCKS),
)  # fmt: skip
"""Options of all catalogs in Java."""

HIVE_ROWS: tuple[Row, ...] = (
    ("hive-conf-dir", _TEXT, None, "Local directory of `hive-site.xml`, which says what options leave open.",
     FOLLOWED),
    ("hadoop-conf-dir", _TEXT, None, "Local directory of `core-site.xml` and `hdfs-site.xml`.",
     "followed: for `hdfs://`"),
    ("metastore.client.class", _TEXT, "Hive's own client", "A Java class that speaks to the metastore.",
     "other classes are refused: only Hive's own protocol is spoken"),
    ("location-in-properties", _BOOL, "false",
     "Keep locations in properties, for metastores that cannot reach the store.",
     FOLLOWED),
    ("client-pool-cache.eviction-interval-ms", _INT, "300000",
     "How long an idle connection is kept, in milliseconds.",
     FOLLOWED),
    ("client-pool-cache.keys", _TEXT, None, "Which catalogs of a JVM share connections.", "refused: none are shared"),
    ("alter-table-cascade", _BOOL, "true", "Change the columns of partitions together with those of the table.",
     FOLLOWED),
    ("hive.skip-update-stats", _BOOL, "false", "Tell the metastore not to count files when a table changes.",
     FOLLOWED),
)  # fmt: skip

JDBC_ROWS: tuple[Row, ...] = (
    ("catalog-key", _TEXT, "jdbc", "Name of the catalog in a database that holds several.", FOLLOWED),
    ("lock-key-max-length", _INT, "255", "The longest name of a lock: catalog, database and table.", FOLLOWED),
    ("jdbc.user", _TEXT, None, "User at the database. Other `jdbc.<parameter>` are parameters of the URL.", FOLLOWED),
    ("jdbc.password", _TEXT, None, "Password at the database.", FOLLOWED),
)  # fmt: skip

REST_ROWS: tuple[Row, ...] = (
    ("prefix", _TEXT, None, "Part of each path at the server; the server says it.", FOLLOWED),
    ("token.provider", "`bear` `dlf`", None, "How requests are signed.", "followed; others are refused"),
    ("token", _TEXT, None, "The bearer token.", FOLLOWED),
    ("token.provider.path", _TEXT, None, "File with the bearer token, read for each request.", FOLLOWED),
    ("data-token.enabled", _BOOL, "false", "Ask the server for credentials of each table's data.", FOLLOWED),
    ("header.User-Agent", _TEXT, "paimon_py", "What requests call themselves. `header.<name>` gives other headers.",
     FOLLOWED),
    ("dlf.region", _TEXT, "of the address", "Region that signatures name.", FOLLOWED),
    ("dlf.access-key-id", _TEXT, None, "Key that signs.", FOLLOWED),
    ("dlf.access-key-secret", _TEXT, None, "Secret of the key.", FOLLOWED),
    ("dlf.security-token", _TEXT, None, "Token of a key that ends.", FOLLOWED),
    ("dlf.token-path", _TEXT, None, "File with keys, read again an hour before they end.", FOLLOWED),
    ("dlf.token-loader", _TEXT, None, "Where keys come from; `ecs`: the role of the machine.",
     "followed; others are refused"),
    ("dlf.token-ecs-metadata-url", _TEXT, "Alibaba Cloud's", "Address that gives the keys of the machine's role.",
     FOLLOWED),
    ("dlf.token-ecs-role-name", _TEXT, None, "Name of the role; asked for if not given.", FOLLOWED),
    ("dlf.oss-endpoint", _TEXT, None, "Address of OSS for the data of tables.", FOLLOWED),
    ("dlf.signing-algorithm", "`default` `openapi`", "by the address", "How requests are signed.", FOLLOWED),
    ("io-cache.enabled", _BOOL, "false", "Keep files in the cache of Alibaba's file system.", _NO_BLOCKS),
    ("io-cache.whitelist-path", _TEXT, "bucket,manifest,index", "Paths that are kept.", _NO_BLOCKS),
    ("io-cache.policy", _TEXT, None, "What is kept: metadata, reads, writes.", _NO_BLOCKS),
)  # fmt: skip

BY_KIND: dict[str, tuple[Row, ...]] = {"filesystem": (), "hive": HIVE_ROWS, "rest": REST_ROWS, "jdbc": JDBC_ROWS}
"""Options of each kind of catalog."""
