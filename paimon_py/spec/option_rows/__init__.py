"""Every table option as a row: name, type, default as a string (None: no default), description.

The type is one of the constants of `kinds.py` or, for an option with a closed set of values, these values separated by
`|`. `tables.py`: layout, writing, reading, commits and compaction. `features.py`: streams, tags, lookups, clustering,
blobs, indexes, and engine options. `iceberg.py`: Iceberg metadata. `own.py`: options of paimon_py alone.

Source: format.md §18; Java `CoreOptions`, release 2.0 and main of August 2026.
"""

from __future__ import annotations

from paimon_py.spec.option_rows.features import ROWS as _FEATURES
from paimon_py.spec.option_rows.iceberg import ROWS as _ICEBERG
from paimon_py.spec.option_rows.kinds import Row
from paimon_py.spec.option_rows.own import ROWS as _OWN
from paimon_py.spec.option_rows.tables import ROWS as _TABLES

ROWS: tuple[Row, ...] = (*_TABLES, *_FEATURES, *_ICEBERG, *_OWN)
