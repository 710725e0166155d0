"""The parts of VARIANT columns that a table's files store as columns, by `variant.shreddingSchema`. Pure.

Source: format.md §8.9; Java `PaimonShreddingUtils.buildVariantSchema`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from paimon_py.errors import OptionError, SchemaError
from paimon_py.spec.options import Options
from paimon_py.spec.type_text import parse_type, sql_type
from paimon_py.spec.types import ArrayType, Atomic, DataType, Root, RowType

OPTION = "variant.shreddingSchema"
_SCALARS = frozenset((
    Root.BOOLEAN, Root.TINYINT, Root.SMALLINT, Root.INT, Root.BIGINT, Root.FLOAT, Root.DOUBLE, Root.DECIMAL,
    Root.VARCHAR, Root.VARIANT,
))  # fmt: skip


def shredded_columns(options: Mapping[str, str]) -> dict[str, DataType]:
    """The shredding type of each VARIANT column, by name.

    Raises: OptionError if the value is not a ROW type, or contains types that variants cannot be shredded into.
    """
    text = Options(options).find_str(OPTION)
    if text is None:
        return {}
    try:
        parsed = parse_type(json.loads(text))
    except (ValueError, SchemaError) as error:
        raise _refusal(text, f"is not a type of a schema file: {error}") from error
    if not isinstance(parsed, RowType):
        raise _refusal(text, "must be a ROW whose fields are VARIANT columns")
    for field in parsed.fields:
        _check(field.type, text)
    return {field.name: field.type for field in parsed.fields}


def _check(kind: DataType, text: str) -> None:
    if isinstance(kind, RowType):
        for field in kind.fields:
            _check(field.type, text)
    elif isinstance(kind, ArrayType):
        _check(kind.element, text)
    elif not isinstance(kind, Atomic) or kind.root not in _SCALARS:
        raise _refusal(text, f"has {sql_type(kind)}, into which Java does not take variants apart")


def _refusal(text: str, reason: str) -> OptionError:
    shown = text if len(text) <= 80 else f"{text[:80]}…"
    return OptionError(f"option {OPTION!r} = {shown!r} {reason}", option=OPTION, value=text)
