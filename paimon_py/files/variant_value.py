"""One variant as a value of Python: made of JSON or of Python values, read by paths."""

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
    """A variant: the bytes of its value, and the dictionary of its keys, as files hold them.

    Two are equal if their bytes are; compare `to_json()` for the same content in other bytes.
    """

    def to_json(self) -> str:
        """The value as JSON text: keys in their order, times, bytes and UUIDs as texts.

        Raises: CorruptionError if the bytes are not a variant.
        """
        return to_json(self.value, self.metadata)

    def to_python(self) -> Any:
        """The value as None, bool, int, float, Decimal, str, bytes, date, datetime, list or dict; UUIDs are texts.

        Raises: CorruptionError if the bytes are not a variant.
        """
        return to_python(self.value, self.metadata)

    def get(self, path: str, type: str | DataType = "VARIANT", *, or_null: bool = False) -> Any:
        """What a path such as `$.user.id` or `$.tags[0]` leads to, in a type; None where it leads nowhere.

        Args:
            type: any type of Paimon but MULTISET and VECTOR; the part as a `Variant` by default.
            or_null: None for a value that the type cannot hold, too.
        Raises:
            UsageError: a path that is none.
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
    """The variant of a JSON text, or of a Python value that is not text: None, numbers, lists, mappings, times, bytes.

    Numbers of JSON with a point are decimals, those with an exponent doubles; floats of Python are doubles.
    Raises: SchemaError for a text that is not JSON, a value that no variant holds, or what is too deep or too large.
    """
    made = from_json(value) if isinstance(value, str) else encode(value)
    return Variant(made.value, made.metadata)
