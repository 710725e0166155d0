"""The format `row`."""
