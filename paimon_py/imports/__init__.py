"""Files of other systems brought into tables: by reference, where they stay and are only read, or as copies.

`source_files` lists and looks into files, `columns` finds the columns of a table and what does not fit, `ledger` keeps
what was brought, `verb` does it, `result` is what a caller gets.
"""
