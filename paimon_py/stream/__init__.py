"""Streams: how the changes of a table are followed, snapshot by snapshot.

`start.py` says where a stream begins and `end.py` where it ends, `follow.py` what is read of a snapshot; these decide
and touch nothing. `follower.py` finds one snapshot after the other, `position.py` puts a place into a text, `stream.py`
and `step.py` are what a user holds. What never lives here: reading files (`scan`), waiting other than through `Env`.
"""
