"""The command line `paimon-py`: commands that call the package's public functions and print results as text, JSON or
CSV.

Commands contain no logic about tables, and no other module imports this package. Needs the extra `cli`.

Source: docs/decisions/0022-command-line.md.
"""
