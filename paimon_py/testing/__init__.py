"""Tools for tests: a suite that every store must pass, stores that fail or count, a simulator of compactions.

Nothing in the core imports this package. Who writes a store for paimon_py may.
"""
