"""Checks of outside input: bytes of metadata files, arguments of callers, calls of public verbs.

Nothing raw passes a door. The cause stays chained, so that a mistake of ours can be told from a damaged file.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from numbers import Integral
from types import FunctionType
from typing import Any, Protocol, TypeVar

from paimon_py.api_hints import explain_call
from paimon_py.errors import (
    CorruptionError,
    NotFoundError,
    PaimonError,
    ResourceError,
    TableNotFoundError,
    UsageError,
)

C = TypeVar("C", bound=type)
G = TypeVar("G")


class NameList(Protocol):
    """Names in their order: a list or a tuple of texts. One text alone is none, also for type checkers."""

    def __contains__(self, value: object, /) -> bool:
        """Whether a name is among these; of a text type checkers know that it asks for texts."""

    def __iter__(self) -> Iterator[str]:
        """The names."""

    def __len__(self) -> int:
        """How many there are."""


UNFORESEEN: tuple[type[Exception], ...] = (
    ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError, EOFError,
)  # fmt: skip
"""What Python raises of values that nobody foresaw; `struct.error` and Arrow's own errors are none of these."""


@contextlib.contextmanager
def decoding_metadata(path: str) -> Iterator[None]:
    """The door of a metadata file: what decoding it raises, beside errors of ours, is CorruptionError with the path.

    Raises: CorruptionError.
    """
    try:
        yield
    except PaimonError:
        raise
    except UNFORESEEN as error:
        shown = "it is nested too deeply" if isinstance(error, RecursionError) else f"{type(error).__name__}: {error}"
        raise CorruptionError(f"{path} cannot be decoded: {shown}", path=path) from error


def as_list(what: str, given: object) -> list[Any]:
    """The items of a list that a caller gave.

    Raises: UsageError for one text, and for what has no items; `what` says what was asked for.
    """
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise UsageError(f"{what}, not {type(given).__name__}: {given!r}")
    try:
        items = iter(given)
    except TypeError as error:  # such as an array without dimensions
        raise UsageError(f"{what}, not {type(given).__name__}: {given!r}") from error
    return list(items)


def as_names(what: str, given: object) -> tuple[str, ...]:
    """The names of a list that a caller gave, in their order.

    Raises: UsageError for what has no items, items that are not texts, and for a set, which has no order; `what` says
    what was asked for.
    """
    if isinstance(given, (set, frozenset)):
        raise UsageError(f"{what}, not a {type(given).__name__}, which has no order: {given!r}")
    items = as_list(what, given)
    for item in items:
        if not isinstance(item, str):
            raise UsageError(f"{what}, not {item!r}")
    return tuple(items)


def as_mapping(what: str, given: object) -> dict[str, Any]:
    """The items of a mapping from names that a caller gave; none for None.

    Raises: UsageError for anything else, which is not repeated: options hold secrets.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        names = " with names that are not texts" if isinstance(given, Mapping) else ""
        raise UsageError(f"{what} map names to strings, got a {type(given).__name__}{names}")
    return dict(given)


def path_text(given: object) -> str:
    """The path or URL of a table, as a text.

    Raises: UsageError for anything but a text and a path.
    """
    if not isinstance(given, str) and not hasattr(given, "__fspath__"):
        raise UsageError(f"Table.open takes the path or URL of the directory of a table, not {given!r}")
    return str(given)


_AGES = frozenset(f"timedelta64[{unit}]" for unit in ("W", "D", "h", "m", "s", "ms", "us", "ns"))
_VALUES = {
    "CommitResult": ".snapshot_id", "RowsResult": ".snapshot_id", "Snapshot": ".id", "Step": ".position",
    "Table": ".name", "Tag": ".name",
}  # fmt: skip


def way_of(given: object) -> str:
    """What to write in the place of a value of paimon_py that holds what was asked for; no words for other values."""
    ours = type(given).__module__.startswith("paimon_py.")
    way = _VALUES.get(type(given).__name__) if ours else None
    return "" if way is None else f"; write {way} of the {type(given).__name__}"


def check_flag(name: str, given: object) -> None:
    """Make sure that a caller means what a flag says: "no" is true in Python, and an empty text no dry run.

    Raises: UsageError for anything but True and False.
    """
    if given is not True and given is not False:
        raise UsageError(f"{name} is True or False, not {given!r}")


def as_python(given: G) -> G:
    """A whole number or an age of NumPy as one of Python; anything else as it is, so that checks tell what it was."""
    if type(given).__name__ == "timedelta64":  # which NumPy counts among its whole numbers
        age: Any = given
        return age.astype("timedelta64[us]").item() if str(age.dtype) in _AGES and age == age else given
    if isinstance(given, Integral) and not isinstance(given, int):
        return int(given)  # type: ignore[return-value]
    return given


def check_progress(given: object) -> None:
    """Make sure that what a caller wants to be told of progress by can be called, or is None.

    Raises: UsageError for anything else, and for what cannot be called with three arguments, or has to be awaited.
    """
    if given is None:
        return
    if not callable(given):
        raise UsageError(f"progress is a function that is told how far the work has come, not {given!r}")
    call = "progress is called as progress(done, total, what)"
    if inspect.iscoroutinefunction(given):
        raise UsageError(f"{call}, and nobody awaits {given!r}: give a function that is not async")
    try:
        inspect.signature(given).bind(0, 0, "")
    except TypeError as error:
        raise UsageError(
            f"{call}, which {given!r} does not take ({error}); write lambda done, total, what: … around what you call"
        ) from None
    except ValueError:
        return  # a function in C that does not say what it takes


def with_location(
    place: Callable[[Any], str],
    there: Callable[[Any], object] | None = None,
    guard: Callable[[Any, Callable[..., Any]], None] | None = None,
) -> Callable[[C], C]:
    """A class decorator: errors of public methods about damaged metadata say where, if they do not yet.

    Rows of manifests are decoded together, whatever file they came from, so that the decoder cannot say it. The
    TypeError of a call that does not fit its verb is told what would. Memory that runs out is a ResourceError. All
    other errors pass as they are, those of a caller's own input among them. Whole numbers of NumPy reach a verb as
    those of Python.

    Args:
        place: where the object lies: a directory or URL.
        there: called if something was not found; raises TableNotFoundError if there is no table any more.
        guard: called with the object and the verb before the verb itself; raises if the verb must not be called now.
    """

    def decorate(cls: C) -> C:
        for name, member in list(vars(cls).items()):
            if name.startswith("_"):
                continue
            if isinstance(member, FunctionType):
                setattr(cls, name, _at_door(member, place, there, guard))
            elif isinstance(member, classmethod):
                setattr(cls, name, classmethod(_at_door(member.__func__, lambda _: "", None, None)))
        return cls

    return decorate


def _at_door(
    verb: Callable[..., Any],
    place: Callable[[Any], str],
    there: Callable[[Any], object] | None,
    guard: Callable[[Any, Callable[..., Any]], None] | None,
) -> Callable[..., Any]:
    @functools.wraps(verb)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            if guard is not None:
                guard(self, verb)
            return verb(self, *map(as_python, args), **{name: as_python(value) for name, value in kwargs.items()})
        except CorruptionError as error:
            if not _lacks_place(error):
                raise
            here = place(self)
            raise CorruptionError(f"{here}: {error}", path=error.path or here, offset=error.offset) from error
        except NotFoundError as error:
            if there is not None and not isinstance(error, TableNotFoundError):
                there(self)
            raise
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is None:  # the verb was not even entered
                explain_call(error, verb, kwargs)
            raise
        except MemoryError as error:
            what = str(error) or type(error).__name__
            raise ResourceError(f"{verb.__qualname__} needs more memory than this process gets: {what}") from error
        except RecursionError as error:
            raise UsageError(
                f"{verb.__qualname__}: an argument is nested too deeply, or the call is made inside too many others"
            ) from error

    return wrapper


def _lacks_place(error: CorruptionError) -> bool:
    """Whether an error names no file, or only what metadata call one."""
    path = error.path
    return path is None or not (path.startswith("/") or "://" in path or path[1:3] == ":/")
