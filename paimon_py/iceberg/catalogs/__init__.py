"""Catalogs of Iceberg that are told where the newest version of a table's metadata lies: REST servers and Hive."""
