"""Avro containers and records, for metadata and for data."""
