"""Foreign directories whose files were imported by reference: they are read, and never deleted.

Not an option of Java: with `data-file.external-paths`, Java's DROP TABLE would delete the whole directories. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from paimon_py.spec.external_paths import declared_roots

REFERENCED = "paimon-py.referenced-paths"
"""The option that lists them, separated by commas; the paths in all versions of a schema stay protected."""


def referenced_paths(options: Mapping[str, str]) -> tuple[str, ...]:
    """The directories in a table's options; parts that are not plain URLs are ignored."""
    return declared_roots(options.get(REFERENCED))
