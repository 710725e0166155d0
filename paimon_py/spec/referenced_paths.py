"""Directories of others in which files of a table lie that were imported by reference: read, and never deleted.

No option of Java: its `data-file.external-paths` would have Java's DROP TABLE delete the whole directories. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from paimon_py.spec.external_paths import declared_roots

REFERENCED = "paimon-py.referenced-paths"
"""Option that names them, with commas between; what any version of a schema names stays protected."""


def referenced_paths(options: Mapping[str, str]) -> tuple[str, ...]:
    """The directories that the options of a table name; a part that is not a plain URL names nothing."""
    return declared_roots(options.get(REFERENCED))
