"""Copies of whole tables: snapshots with their metadata and files, copied as they are."""
