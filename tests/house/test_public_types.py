"""Types of public signatures can be imported from public places, and what a user completes shows no inner package."""

from __future__ import annotations

import importlib
import inspect
import types
import typing

import pyarrow.dataset

import paimon_py
import paimon_py.cdc
import paimon_py.spark
import paimon_py.types
from paimon_py.stream.stream import Stream

OF_MAKERS = {"Metastore", "TableRoot"}
"""What those name who write a catalog of their own, in `Catalog.of` and the constructors."""


MADE = {paimon_py.types.Env, paimon_py.types.SerialPool, paimon_py.types.Credentials}
"""Classes of `paimon_py.types` that programs call, so that their arguments count too."""


class Later(dict):
    """Stands for names that modules import for type checkers alone."""

    def __missing__(self, name):
        known = {**vars(paimon_py.types), "Catalog": paimon_py.Catalog, "Scan": paimon_py.Scan, "Stream": Stream, "Dataset": pyarrow.dataset.Dataset, "TorchRows": object}
        known["ray"] = types.SimpleNamespace(data=types.SimpleNamespace(Dataset=object))
        if name not in known and name not in ("duckdb", "pandas", "polars"):
            raise KeyError(name)
        return known[name] if name in known else importlib.import_module(name)


def leaves(hint):
    """The classes in a hint."""
    if inspect.isclass(hint) and not typing.get_args(hint):
        yield hint
    for inner in hint if isinstance(hint, list) else typing.get_args(hint):
        yield from leaves(inner)


def leaves_of(hints):
    return {leaf for hint in hints.values() for leaf in leaves(hint)}


def named_by(cls):
    """Classes of ours that the public methods and fields of a class name, with where."""
    fields = typing.get_type_hints(cls, localns=Later()) if hasattr(cls, "__struct_fields__") else {}
    hints = {name: fields[name] for name in getattr(cls, "__struct_fields__", ()) if name in fields}
    for name, member in inspect.getmembers(cls):
        function = member.fget if isinstance(member, property) else member
        made = name == "__init__" and cls in MADE
        if (made or not name.startswith("_")) and (inspect.isfunction(function) or inspect.ismethod(function)):
            hints |= {f"{name}({each})": hint for each, hint in typing.get_type_hints(function, localns=Later()).items()}
    for where, hint in hints.items():
        for leaf in leaves(hint):
            if leaf.__module__.startswith("paimon_py"):
                yield leaf, f"{cls.__name__}.{where}"


def public():
    return {
        *(getattr(paimon_py, name) for name in paimon_py.__all__),
        *(getattr(paimon_py.types, name) for name in paimon_py.types.__all__ if not name.startswith("_")),
    }


def of_cdc():
    return {getattr(paimon_py.cdc, name) for name in paimon_py.cdc.__all__}


def test_types_of_public_signatures_are_public():
    known = public() | of_cdc()
    classes = [each for each in known if inspect.isclass(each)]
    assert {paimon_py.Table, paimon_py.types.Writer, paimon_py.cdc.Routes} <= set(classes)
    missing = {}
    for cls in classes:
        for leaf, where in named_by(cls):
            if leaf not in known and leaf.__name__ not in OF_MAKERS:
                missing[f"{leaf.__module__}.{leaf.__name__}"] = where
    assert missing == {}


def test_types_of_public_functions_are_public():
    known = public() | of_cdc()
    functions = [each for each in known if inspect.isfunction(each)]
    assert {paimon_py.sql, paimon_py.cdc.rows_of, paimon_py.write_spark} <= set(functions)
    hints = {leaf for function in functions for leaf in leaves_of(typing.get_type_hints(function, localns=Later()))}
    assert [leaf for leaf in hints if leaf.__module__.startswith("paimon_py") and leaf not in known] == []
    assert paimon_py.types.Calculable in hints


def test_the_list_of_types_is_what_is_there():
    names = {name for name, value in vars(paimon_py.types).items() if not name.startswith("_") and name != "annotations"}
    assert names == set(paimon_py.types.__all__)


def test_completion_shows_public_names_alone():
    shown = [name for name in dir(paimon_py) if not name.startswith("_")]
    assert shown == sorted(paimon_py.__all__)
    assert "__version__" in dir(paimon_py)
    for module, decoders in ((paimon_py.types, ()), (paimon_py.spark, ()), (paimon_py.cdc, ("canal", "debezium", "maxwell"))):
        assert [name for name in dir(module) if not name.startswith("_")] == sorted((*module.__all__, *decoders))
        assert "__doc__" in dir(module) and all(hasattr(module, name) for name in dir(module))
