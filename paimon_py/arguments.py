"""Checks of outside input: bytes of metadata files, arguments of callers, calls of public methods.

No raw Python error leaves the package. The cause stays chained, so that a bug can be distinguished from a damaged file.
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
    """Names in order: a list or tuple of strings. A single string is not accepted, at run time or by type checkers."""

    def __contains__(self, value: object, /) -> bool:
        """Whether a name is included; type checkers know by it that a plain string is not a list of names."""

    def __iter__(self) -> Iterator[str]:
        """The names."""

    def __len__(self) -> int:
        """The number of names."""


UNFORESEEN: tuple[type[Exception], ...] = (
    ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError, EOFError,
)  # fmt: skip
"""Errors that Python raises for unexpected values; `struct.error` and Arrow's own errors are not included."""


@contextlib.contextmanager
def decoding_metadata(path: str) -> Iterator[None]:
    """Convert errors while decoding a metadata file, except those of paimon_py, to CorruptionError with the path.

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
    """The items of a list from a caller.

    Raises: UsageError for a single string, and for values that are not iterable; `what` describes the expected value.
    """
    return list(as_items(what, given))


def as_items(what: str, given: object) -> Iterator[Any]:
    """The items of an iterable from a caller, one after the other. Raises: as `as_list`"""
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise UsageError(f"{what}, not {type(given).__name__}: {given!r}")
    try:
        return iter(given)
    except TypeError as error:  # such as an array without dimensions
        raise UsageError(f"{what}, not {type(given).__name__}: {given!r}") from error


def as_names(what: str, given: object) -> tuple[str, ...]:
    """The names of a list from a caller, in order.

    Raises: UsageError for values that are not iterable, items that are not strings, and sets, which have no order;
    `what` describes the expected value.
    """
    if isinstance(given, (set, frozenset)):
        raise UsageError(f"{what}, not a {type(given).__name__}, which has no order: {given!r}")
    items = as_list(what, given)
    for item in items:
        if not isinstance(item, str):
            raise UsageError(f"{what}, not {item!r}")
    return tuple(items)


def as_mapping(what: str, given: object) -> dict[str, Any]:
    """The items of a mapping with string keys from a caller; empty for None.

    Raises: UsageError for anything else, without repeating the value: options may contain secrets.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        names = " with names that are not strings" if isinstance(given, Mapping) else ""
        raise UsageError(f"{what} map names to strings, got a {type(given).__name__}{names}")
    return dict(given)


def path_text(given: object) -> str:
    """The path or URL of a table, as a string.

    Raises: UsageError for anything but a string or path.
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
    """A hint for a value of paimon_py that contains the expected one; empty for other values."""
    ours = type(given).__module__.startswith("paimon_py.")
    way = _VALUES.get(type(given).__name__) if ours else None
    return "" if way is None else f"; write {way} of the {type(given).__name__}"


def check_flag(name: str, given: object) -> None:
    """Check that a flag is a bool: "no" is true in Python, and an empty string would mean no dry run.

    Raises: UsageError for anything but True and False.
    """
    if given is not True and given is not False:
        raise UsageError(f"{name} is True or False, not {given!r}")


_BITS = 2048
"""The most bits of an integer that Python always writes as text; it may refuse to write longer ones."""


def value_repr(given: object) -> str:
    """The `repr` of a value for messages; only the number of digits of an integer that Python does not write."""
    if isinstance(given, int) and given.bit_length() > _BITS:
        return f"a whole number of {given.bit_length() * 30103 // 100000 + 1:,} digits"
    return repr(given)


def as_python(given: G, name: str = "an argument") -> G:
    """Convert an integer or duration of NumPy to Python; other values unchanged, so that checks can describe them.

    Raises: UsageError for an integer of so many digits that no check could describe it.
    """
    if isinstance(given, int) and given.bit_length() > _BITS:
        raise UsageError(f"{name} is {value_repr(given)}: numbers of calls have at most 19")
    if type(given).__name__ == "timedelta64":  # a subclass of NumPy's integers
        age: Any = given
        return age.astype("timedelta64[us]").item() if str(age.dtype) in _AGES and age == age else given
    if isinstance(given, Integral) and not isinstance(given, int):
        return int(given)  # type: ignore[return-value]
    return given


def check_progress(given: object) -> None:
    """Check that a progress callback can be called, or is None.

    Raises: UsageError for other values, functions that do not take three arguments, and async functions.
    """
    if given is None:
        return
    if not callable(given):
        raise UsageError(f"progress is a function that is called as the work proceeds, not {given!r}")
    call = "progress is called as progress(done, total, what)"
    if inspect.iscoroutinefunction(given):
        raise UsageError(f"{call}, and {given!r} would not be awaited: pass a function that is not async")
    try:
        inspect.signature(given).bind(0, 0, "")
    except TypeError as error:
        raise UsageError(
            f"{call}, which {given!r} does not accept ({error}); write lambda done, total, what: … around your call"
        ) from None
    except ValueError:
        return  # a function in C without a signature


def with_location(
    place: Callable[[Any], str],
    there: Callable[[Any], object] | None = None,
    guard: Callable[[Any, Callable[..., Any]], None] | None = None,
) -> Callable[[C], C]:
    """A class decorator: errors of public methods about damaged metadata get a location, if they have none yet.

    Rows of manifests of several files are decoded together, so the decoder does not know the file. The TypeError of a
    call that does not fit its method gets a hint. Running out of memory becomes a ResourceError, and an integer that
    Python does not write as text a UsageError. All other errors pass unchanged, including those of the caller's own
    input. Integers of NumPy are converted to those of Python.

    Args:
        place: the location of the object: a directory or URL.
        there: called if something was not found; raises TableNotFoundError if the table no longer exists.
        guard: called with the object and the method before the method itself; raises if it must not be called now.
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
            named = {name: as_python(value, name) for name, value in kwargs.items()}
            return verb(self, *map(as_python, args), **named)
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
        except ValueError as error:
            if isinstance(error, PaimonError) or "integer string conversion" not in str(error):
                raise
            raise UsageError(
                f"{verb.__qualname__}: an argument contains a number of thousands of digits; tables hold at most 38"
            ) from error
        except RecursionError as error:
            raise UsageError(
                f"{verb.__qualname__}: an argument is nested too deeply, or the call is made inside too many others"
            ) from error

    return wrapper


def _lacks_place(error: CorruptionError) -> bool:
    """Whether an error contains no file, or only the name of one in metadata."""
    path = error.path
    return path is None or not (path.startswith("/") or "://" in path or path[1:3] == ":/")
