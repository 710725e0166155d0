"""Publishes the newest version of a table's metadata to Iceberg catalogs: REST servers and Hive."""
