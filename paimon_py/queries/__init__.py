"""SQL over the tables of a catalog, carried out by DuckDB.

`time_travel` rewrites states of tables, `statement` finds the tables of a query, `session` is one DuckDB that reads
them, `query` is what a caller holds.
"""
