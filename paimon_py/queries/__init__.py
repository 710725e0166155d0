"""Runs SQL over the tables of a catalog with DuckDB.

`time_travel` rewrites time travel clauses, `statement` finds the tables of a query, `session` is a DuckDB connection
that reads them, `query` is the object that a caller gets.
"""
