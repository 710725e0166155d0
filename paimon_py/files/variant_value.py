"""One variant as a Python value: created from JSON or Python values, and read by paths."""

from __future__ import annotations

from typing import Any

from paimon_py.codec.variant.decode import to_json, to_python
from paimon_py.codec.variant.encode import encode, from_json
from paimon_py.codec.variant.form import Encoded
from paimon_py.codec.variant.get import Node, Wanted, get, part_of, walk
from paimon_py.files.variant_parts import cast_array
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import Atomic, DataType, Root
from paimon_py.spec.variant_paths import parse_path


class Variant(Encoded, frozen=True):
    """A variant: the bytes of its value, and its key dictionary, as stored in files.

    Two are equal if their bytes are equal; compare `to_json()` for equal content in different bytes.
    """

    def to_json(self) -> str:
        """The value as JSON: keys in stored order; times, bytes and UUIDs as strings.

        Raises: CorruptionError if the bytes are not a variant.
        """
        return to_json(self.value, self.metadata)

    def to_python(self) -> Any:
        """The value as None, bool, int, float, Decimal, str, bytes, date, datetime, list or dict; UUIDs are strings.

        Raises: CorruptionError if the bytes are not a variant.
        """
        return to_python(self.value, self.metadata)

    def get(self, path: str, type: str | DataType = "VARIANT", *, or_null: bool = False) -> Any:
        """The part at a path such as `$.user.id` or `$.tags[0]`, cast to a type; None if the path does not exist.

        Args:
            type: any Paimon type except MULTISET and VECTOR; a `Variant` by default.
            or_null: return None also for a value that the type cannot hold.
        Raises:
            UsageError: an invalid path.
            SchemaError: a value that the type cannot hold.
            CorruptionError: the bytes are not a variant.
        """
        wanted = parse_type(type)
        node = walk(Node(self.value, self.metadata, 0), parse_path(path))
        if node is not None and wanted == _VARIANT:
            part = part_of(node)
            return Variant(part.value, part.metadata)
        return get([node], Wanted(wanted, cast_array, or_null, path))[0].as_py()

    def __str__(self) -> str:
        return self.to_json()


_VARIANT = Atomic(Root.VARIANT)


def variant(value: object) -> Variant:
    """The variant of a JSON string, or of another Python value: None, numbers, lists, mappings, times, bytes.

    JSON numbers with a decimal point become decimals, those with an exponent doubles; Python floats become doubles.
    Raises: SchemaError for invalid JSON, an unsupported value, or one that is nested too deeply or too large.
    """
    made = from_json(value) if isinstance(value, str) else encode(value)
    return Variant(made.value, made.metadata)
