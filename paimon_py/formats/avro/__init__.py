"""The Avro format for data files."""
