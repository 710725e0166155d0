"""Tools for tests: a suite that every store must pass, stores that fail or count calls, a simulator of compactions.

Nothing in the core imports this package. Authors of a store for paimon_py may use it.
"""
