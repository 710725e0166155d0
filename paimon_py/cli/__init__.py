"""The command line `paimon-py`: public calls of the package behind commands, and what they gave as text, JSON or CSV.

Nothing is decided about tables here, and nothing else of the package imports this one. Needs the extra `cli`.

Source: docs/decisions/0022-command-line.md.
"""
