"""Streams: following the changes of a table, snapshot by snapshot.

`start.py` defines where a stream begins and `end.py` where it ends, `follow.py` what to read of a snapshot; these only
decide and do no I/O. `follower.py` finds one snapshot after the other, `position.py` serialises a position,
`stream.py` and `step.py` are the user's objects. Out of scope: reading files (`scan`), waiting other than through
`Env`.
"""
