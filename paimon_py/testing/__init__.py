"""Tools for testing against a store: a suite every store must pass, stores that fail or count, fixed environments.

Nothing in the core imports this package; users who write their own store may.
"""
