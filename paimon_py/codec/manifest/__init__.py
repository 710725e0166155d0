"""Manifests and manifest lists: Avro bytes and columns of entries.

`entries.py` and `lists.py` are the entry points; `lockstep.py` decodes many records at once with the steps of
`program.py`; `copy.py` copies entries without decoding them.

Source: format.md §5.
"""
