"""Data files: a format together with a schema and statistics.

A reader opens a file of any schema version and yields batches of the requested schema (`reader`, `evolve`, `casts`),
without dead rows (`deletion_filter`). A writer rolls batches into files of a target size and returns `DataFile` values
with exact key ranges and statistics (`writer`, `stats`, `naming`). Out of scope: which files to read or write and in
which order; merging rows.
"""
