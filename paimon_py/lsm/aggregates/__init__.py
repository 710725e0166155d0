"""The aggregate functions of fields: how the versions of one column become one value. One module a family.

Each is a function over all groups of a window at once; merge engines decide which rows count and how.
"""

from __future__ import annotations
