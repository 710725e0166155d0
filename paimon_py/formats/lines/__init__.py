"""Formats of lines: `json` and `text`."""
