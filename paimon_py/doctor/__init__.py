"""Finds present and developing problems of a table: gathers facts once (`gather`); findings are pure functions of them.

Nothing here writes, deletes or repairs; a finding names the call that does.
"""
