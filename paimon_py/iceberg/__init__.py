"""Iceberg metadata of a Paimon table: files that let Iceberg readers see the same data files.

Here live the values of Iceberg's metadata, their bytes, the decisions what a Paimon snapshot means for Iceberg readers,
and the publication of them. Nothing here commits to the Paimon table, and nothing here changes a data file.

Source: docs/format.md §25; Apache Iceberg table specification, versions 2 and 3.
"""
