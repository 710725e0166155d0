"""Commits: turn changes into snapshots.

Changes (`changes.py`) become proposals (`proposals.py`): edits, and requirements on the latest state. `attempts.py`
plans a proposal on the latest state (`state.py`), writes manifests (`drafts.py`) and asks a committer to publish, until
the snapshot is published or certainly cannot be. Conflicts and parts are decided by pure functions. Out of scope:
the metadata files themselves (`metadata`), merging rows (`lsm`).
"""
