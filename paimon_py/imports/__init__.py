"""Imports files of other systems into tables: by reference, where they stay in place and are only read, or as copies.

`source_files` lists and inspects files, `columns` determines the columns of a table and the files that do not fit,
`ledger` records the imported files, `verb` runs an import, `result` is what a caller gets.
"""
