"""The ORC format: pyarrow, and corrections where it differs from Java."""
