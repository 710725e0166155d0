"""Data files: a format together with a schema and statistics.

A reader opens a file of any schema version and yields batches of the schema asked for (`reader`, `evolve`, `cast`),
without dead rows (`alive`). A writer rolls batches into files of a target size and yields `DataFile` values with exact
key ranges and statistics (`writer`, `stats`, `naming`). What never lives here: which files to read or write, and in
which order; merging rows.
"""
