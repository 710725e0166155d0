"""The one door to bytes at rest: local files, object stores, memory. Knows nothing of tables."""
