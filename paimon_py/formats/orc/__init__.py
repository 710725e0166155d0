"""The ORC format: what pyarrow does, and what it does not do as Java does."""
