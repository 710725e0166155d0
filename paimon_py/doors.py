"""The outermost door: what public verbs raise says which table it is about, and no call ends in a RecursionError."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from paimon_py.errors import CorruptionError, UsageError

C = TypeVar("C", bound=type)


def names_place(place: Callable[[Any], str]) -> Callable[[C], C]:
    """A class decorator: errors of public methods about damaged metadata say where, if they do not yet.

    Rows of manifests are decoded together, whatever file they came from, so that the decoder cannot say it. All other
    errors pass as they are, those of a caller's own input among them.

    Args:
        place: where the object lies: a directory or URL.
    """

    def decorated(cls: C) -> C:
        for name, member in list(vars(cls).items()):
            if name.startswith("_"):
                continue
            if isinstance(member, FunctionType):
                setattr(cls, name, _at_door(member, place))
            elif isinstance(member, classmethod):
                setattr(cls, name, classmethod(_at_door(member.__func__, lambda _: "")))
        return cls

    return decorated


def _at_door(verb: Callable[..., Any], place: Callable[[Any], str]) -> Callable[..., Any]:
    @functools.wraps(verb)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return verb(self, *args, **kwargs)
        except CorruptionError as error:
            if not _lacks_place(error):
                raise
            here = place(self)
            raise CorruptionError(f"{here}: {error}", path=error.path or here, offset=error.offset) from error
        except RecursionError as error:
            raise UsageError(
                f"{verb.__qualname__}: an argument is nested too deeply, or the call is made inside too many others"
            ) from error

    return called


def _lacks_place(error: CorruptionError) -> bool:
    """Whether an error names no file, or only what metadata call one."""
    path = error.path
    return path is None or not (path.startswith("/") or "://" in path or path[1:3] == ":/")
