"""Avro containers and records, of metadata and of data."""
