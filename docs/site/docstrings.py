"""Docstrings and signatures of paimon_py as the API reference shows them."""

from __future__ import annotations

import re
from typing import Any

import griffe

LABELLED = re.compile(r"^(Cost|Raises|Returns|Source|Memory): *(?P<text>\S[^\n]*(?:\n[ \t]+\S[^\n]*)*)", re.M)
FLAT = re.compile(r"\s*\n\s*")
SEVERAL = re.compile(r"^(?P<space> +)(?P<names>\w+(?:, \w+)+):(?P<text>[^\n]*(?:\n(?P=space) +\S[^\n]*)*)", re.M)
STRUCT = "msgspec.Struct"
CONSTRUCTED = {"paimon_py.cdc.sink.Sink", "paimon_py.env.Env", "paimon_py.spec.new_schema.Schema"}
"""Classes with an `__init__` that programs call; objects of other classes come from calls."""


class Labels(griffe.Extension):
    """Makes a paragraph of what stands behind `Cost:`, `Raises:`, `Returns:` and `Source:` on one line.

    Arguments and attributes that share a line get a line each. Values (`msgspec.Struct`) get the signature that their
    fields make, unless the docstring lists the fields; so do data classes.
    """

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Mend the docstring of an object."""
        if obj.docstring is not None:
            obj.docstring.value = SEVERAL.sub(_line_each, LABELLED.sub(_paragraph, obj.docstring.value))

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Give a value its signature, and none to objects that calls make."""
        if "__init__" in cls.members and cls.path not in CONSTRUCTED:
            cls.del_member("__init__")
        if "__init__" in cls.members or (cls.docstring is not None and "\nAttributes:" in cls.docstring.value):
            return
        line = [*reversed(cls.mro()), cls]
        plain = any("dataclass" in str(decorator.value) for decorator in cls.decorators)
        if not plain and not any(_is(base, STRUCT) for each in line for base in each.bases):
            return
        fields = {field.name: field for each in line for field in _fields(each)}
        this = griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)
        parameters = griffe.Parameters(this, *sorted(fields.values(), key=_is_by_name))
        cls.set_member("__init__", griffe.Function("__init__", parameters=parameters, returns="None"))


def _fields(cls: griffe.Class) -> list[griffe.Parameter]:
    by_name = str(cls.keywords.get("kw_only")) == "True"
    kind = griffe.ParameterKind.keyword_only if by_name else griffe.ParameterKind.positional_or_keyword
    return [
        griffe.Parameter(name, annotation=member.annotation, kind=kind, default=member.value)
        for name, member in cls.members.items()
        if isinstance(member, griffe.Attribute) and "instance-attribute" in member.labels
    ]


def _is(base: griffe.Expr | str, path: str) -> bool:
    return (base if isinstance(base, str) else base.canonical_path) == path


def _is_by_name(field: griffe.Parameter) -> bool:
    return field.kind is griffe.ParameterKind.keyword_only


def _line_each(found: re.Match[str]) -> str:
    return "\n".join(f"{found['space']}{name}:{found['text']}" for name in found["names"].split(", "))


def _paragraph(found: re.Match[str]) -> str:
    return f"\n**{found[1]}:** {FLAT.sub(' ', found['text'])}\n"
