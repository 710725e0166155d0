"""Options that are given for a single scan.

Source: Java `Table.copy(dynamicOptions)`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from paimon_py.errors import UsageError
from paimon_py.scan.incremental import INCREMENTAL
from paimon_py.spec.blobs import AS_DESCRIPTOR
from paimon_py.spec.option_changes import check_dynamic
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.supported import check_scannable

_OF_SCANS = frozenset(("scan", *INCREMENTAL, "incremental-between-scan-mode", "incremental-between-tag-to-snapshot"))
"""Prefixes of those options of a single scan that choose a state or a span; the others override the table's own."""
_OF_READS = frozenset(("scan.bucket", "scan.plan.executor-manifests"))
"""Options with such a name that do not choose a state."""


def with_options(schema: TableSchema, options: Mapping[str, str] | None) -> TableSchema:
    """The schema with the options of one scan, except for those that select a snapshot.

    Raises: UsageError if `options` is not a mapping, OptionError for an option that cannot be set for one scan.
    """
    dynamic = options_of_reads(_checked_options(options, schema))
    found = msgspec.structs.replace(schema, options={**schema.options, **dynamic})
    if dynamic:
        check_scannable(found)
    return found


def options_of_reads(options: Mapping[str, str] | None) -> Mapping[str, str]:
    """The options of one scan that change how a state is read, whichever it is."""
    given = options or {}
    names = [name for name in given if name in _OF_READS or name.partition(".")[0] not in _OF_SCANS]
    return {name: given[name] for name in names}


def like_given(schema: TableSchema, given: TableSchema, options: Mapping[str, str]) -> TableSchema:
    """An earlier schema of a table, with the options of the scan, and that for the representation of values.

    `given`: the current schema with the options of the scan.
    """
    text = given.options.get(AS_DESCRIPTOR)
    found = msgspec.structs.replace(schema, options={**schema.options, **options})
    return found if text is None else with_option(found, AS_DESCRIPTOR, text)


def with_option(schema: TableSchema, name: str, text: str) -> TableSchema:
    """The schema with one option replaced."""
    return msgspec.structs.replace(schema, options={**schema.options, name: text})


def _checked_options(options: Mapping[str, str] | None, schema: TableSchema) -> Mapping[str, str]:
    if options is not None and not isinstance(options, Mapping):
        raise UsageError(f"options map names to strings, got a {type(options).__name__}")
    for name, text in (options or {}).items():
        check_dynamic(schema, name, text)
    return options or {}

