"""System tables: a table seen in another way, under a name such as `db.t$audit_log`. They are read and never written.

What tells one from another is a value (`Kind`, in `system/kinds.py`); all of them are read through `SystemTable`.
Nothing here plans or reads files: that is what `scan` is for.
"""
