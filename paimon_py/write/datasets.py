"""The rows of a pyarrow dataset; refuses files with a column that would be silently left out.

A dataset with a given schema fills columns that a file lacks with NULL, and drops those that the schema lacks. A column
that is spelled differently in one file, or a CSV file with another delimiter, would be NULL in all of its rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from paimon_py.errors import SchemaError
from paimon_py.expr.bind import near_names


def open_dataset(dataset: Any) -> pa.RecordBatchReader:
    """A reader over a dataset.

    Cost: like a scan of the dataset, which reads the schema of each file anyway.
    Raises: SchemaError, while it is read, at the first file with a column that the dataset's schema lacks.
    """
    scanner = dataset.scanner()
    return pa.RecordBatchReader.from_batches(scanner.projected_schema, _check_batches(dataset.schema, scanner))


def _check_batches(schema: pa.Schema, scanner: Any) -> Iterator[pa.RecordBatch]:
    last = None
    for tagged in scanner.scan_batches():
        fragment = tagged.fragment
        if last is None or fragment is not last:
            _check(schema, fragment)
            last = fragment
        yield tagged.record_batch


def _check(schema: pa.Schema, fragment: Any) -> None:
    names = fragment.physical_schema.names
    unknown = [name for name in names if name not in schema.names]
    if not unknown:
        return
    near = near_names(unknown[0], [name for name in schema.names if name not in names])
    hint = f" (is {unknown[0]!r} {' or '.join(map(repr, near))}?)" if near else ""
    place = getattr(fragment, "path", "a fragment")
    raise SchemaError(
        f"{place} has {', '.join(map(repr, unknown))}, which the schema of the dataset lacks{hint}: the rows would be"
        " written without it. Rename the column, give the dataset the delimiter of the file, or say which columns are"
        " meant: dataset.scanner(columns=[…]).to_reader()",
        fields=tuple(unknown),
    )
