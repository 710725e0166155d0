"""Committing: changes into snapshots.

What a commit contains, and whether it conflicts with what others did, is decided by pure functions; publishing one file
that did not exist makes it happen.
"""
