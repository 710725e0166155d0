"""Table options as data, and a typed reader.

Options are stored as strings. `Options` looks up an option by its name or older names, and converts its value as Java
does; an invalid value is an `OptionError` that names the option, the value and the allowed values.

Source: format.md §18; Java `ConfigOption`, `OptionsUtils`, `MemorySize`, `TimeUtils`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import msgspec

from paimon_py.errors import OptionError
from paimon_py.spec.option_names import FALLBACKS, check_names
from paimon_py.spec.option_rows import ROWS
from paimon_py.spec.option_rows.kinds import BOOL, INT, LONG, MAP, REAL, SIZE, TEXT, TIME
from paimon_py.spec.redact import shown_options

__all__ = ["OPTIONS", "Option", "Options", "check_names", "check_values", "is_default"]

T = TypeVar("T")


class Option(msgspec.Struct, frozen=True):
    """One table option.

    `type` is int, long, bool, real, text, size (bytes), time (a duration), map, or the allowed values separated by `|`.
    `default` is a string in the user's format; None if there is none. `fallbacks` are older names of the option.
    """

    name: str
    type: str
    default: str | None
    doc: str
    fallbacks: tuple[str, ...] = ()

    @property
    def choices(self) -> tuple[str, ...]:
        """The allowed values of an option with a closed set of values, else empty."""
        return tuple(self.type.split("|")) if "|" in self.type else ()


OPTIONS: Mapping[str, Option] = {row[0]: Option(*row, FALLBACKS.get(row[0], ())) for row in ROWS}
"""Every table option by name."""

_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")
_REAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[dDfF]?")
_QUANTITY = re.compile(r"([0-9]{1,19})\s*([^\s0-9]*)")
_BOUNDS = {INT: 2**31, LONG: 2**63}
_POSITIVE = frozenset(("read.parallelism",))
_SIZES: dict[str, int] = {
    unit: 1024**power
    for power, units in enumerate(
        (
            ("", "b", "bytes"),
            ("k", "kb", "kibibytes"),
            ("m", "mb", "mebibytes"),
            ("g", "gb", "gibibytes"),
            ("t", "tb", "tebibytes"),
        )
    )
    for unit in units
}
_NANOS = {
    label: nanos
    for nanos, labels in (
        (1_000_000, ("", "ms", "milli", "millis", "millisecond", "milliseconds")),
        (86_400_000_000_000, ("d", "day", "days")),
        (3_600_000_000_000, ("h", "hour", "hours")),
        (60_000_000_000, ("m", "min", "minute", "minutes")),
        (1_000_000_000, ("s", "sec", "secs", "second", "seconds")),
        (1_000, ("µs", "μs", "micro", "micros", "microsecond", "microseconds")),
        (1, ("ns", "nano", "nanos", "nanosecond", "nanoseconds")),
    )
    for label in labels
}


class Options(Mapping[str, str]):
    """A mapping of option strings with typed lookups.

    `get_…` returns the value or the option's default and fails if there is neither; `find_…` returns None in that case.
    A name that is not in `OPTIONS` is a programming error (KeyError).

    Units: sizes in bytes, durations in milliseconds.
    """

    __slots__ = ("_texts",)

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def __getitem__(self, name: str) -> str:
        return self._texts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def __repr__(self) -> str:
        return f"Options({shown_options(self._texts)!r})"

    def is_set(self, name: str) -> bool:
        """Whether the option, or one of its older names, is set."""
        option = OPTIONS[name]
        return name in self._texts or any(older in self._texts for older in option.fallbacks)

    def find_str(self, name: str) -> str | None:
        """The value of any option, as a string."""
        option = OPTIONS[name]
        for key in (name, *option.fallbacks):
            text = self._texts.get(key)
            if text is not None:
                return text
        return option.default

    def find_int(self, name: str) -> int | None:
        """The value of an integer option."""
        text = self.find_str(name)
        return None if text is None else _whole(OPTIONS[name], text)

    def find_size(self, name: str) -> int | None:
        """The value of a size option, in bytes."""
        text = self.find_str(name)
        return None if text is None else _size(OPTIONS[name], text)

    def find_duration(self, name: str) -> int | None:
        """The value of a duration option, in whole milliseconds."""
        text = self.find_str(name)
        return None if text is None else _nanos(OPTIONS[name], text) // 1_000_000

    def get_str(self, name: str) -> str:
        """The value of any option, as a string."""
        return _need(name, self.find_str(name))

    def get_int(self, name: str) -> int:
        """The value of an integer option."""
        return _need(name, self.find_int(name))

    def get_bool(self, name: str) -> bool:
        """The value of a boolean option."""
        return _bool(OPTIONS[name], self.get_str(name))

    def get_float(self, name: str) -> float:
        """The value of a float option."""
        return _real(OPTIONS[name], self.get_str(name))

    def get_memory(self, name: str) -> int:
        """The value of a size option, in bytes."""
        return _need(name, self.find_size(name))

    def get_duration(self, name: str) -> int:
        """The value of a duration option, in whole milliseconds."""
        return _need(name, self.find_duration(name))

    def get_enum(self, name: str) -> str:
        """One of the allowed values, spelled as in the option's row."""
        return _choice(OPTIONS[name], self.get_str(name))

    def get_list(self, name: str) -> tuple[str, ...]:
        """The names in a comma-separated list; empty if not set."""
        text = self.find_str(name)
        return tuple(part.strip() for part in text.split(",") if part.strip()) if text else ()

    def get_map(self, name: str) -> dict[str, str]:
        """The mapping `k1:v1,k2:v2`, also from options named `<name>.<k>`."""
        return _map(OPTIONS[name], self._texts)


def require_texts(options: Mapping[str, object]) -> None:
    """Refuse values that are not strings.

    Raises: OptionError with the string to use instead; also for half of a surrogate pair.
    """
    for name, value in options.items():
        if isinstance(value, str):
            if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
                raise OptionError(f"option {name!r} is not valid Unicode: {value!r}", option=name, value=value)
            continue
        if value is None:
            shown = "None; leave it out"
        elif isinstance(value, bool):
            shown = f"{value}; write '{str(value).lower()}'"
        else:
            is_number = isinstance(value, (int, float))
            shown = f"{value!r}; write {str(value)!r}" if is_number else f"a {type(value).__name__}"
        raise OptionError(f"option {name!r} needs a string, not {shown}", option=name)


def check_values(options: Mapping[str, str]) -> None:
    """Refuse values that do not fit the type of their option; unknown options pass.

    Raises:
        OptionError: the message names the option, the value and the allowed values.
    """
    require_texts(options)
    for name, text in options.items():
        option = OPTIONS.get(name)
        if option is not None:
            _check(option, text)


def is_default(name: str, text: str) -> bool:
    """Whether a value equals the option's default: `60 min` is the `1 h` of `snapshot.time-retained`.

    Raises: OptionError for an invalid value.
    """
    option = OPTIONS[name]
    return option.default is not None and _meaning(option, text) == _meaning(option, option.default)


def _meaning(option: Option, text: str) -> object:
    readers: dict[str, Callable[[Option, str], object]] = {
        INT: _whole, LONG: _whole, BOOL: _bool, REAL: _real, SIZE: _size, TIME: _nanos
    }  # fmt: skip
    read = _choice if option.choices else readers.get(option.type)
    return text if read is None else read(option, text)


def _check(option: Option, text: str) -> None:
    if option.choices:
        _choice(option, text)
    elif option.type in _BOUNDS:
        _whole(option, text)
    elif option.type == BOOL:
        _bool(option, text)
    elif option.type == REAL:
        _real(option, text)
    elif option.type == SIZE:
        _size(option, text)
    elif option.type == TIME:
        _nanos(option, text)
    elif option.type == MAP:
        _map(option, {option.name: text})
    else:
        assert option.type == TEXT


def _need(name: str, value: T | None) -> T:
    if value is None:
        raise OptionError(f"option {name!r} is needed here and has no default", option=name)
    return value


def _wrong(option: Option, text: str, allowed: str) -> OptionError:
    return OptionError(
        f"option {option.name!r} is {text!r}; it must be {allowed}", option=option.name, value=text
    )


def _whole(option: Option, text: str) -> int:
    bound = _BOUNDS.get(option.type, 2**63)
    if _NUMBER.fullmatch(text) is None or not -bound <= int(text) < bound:
        raise _wrong(option, text, f"a whole number of {32 if bound == 2**31 else 64} bits")
    if option.name in _POSITIVE and int(text) < 1:
        raise _wrong(option, text, "a whole number from 1")
    return int(text)


def _bool(option: Option, text: str) -> bool:
    lower = text.lower()
    if lower not in ("true", "false"):
        raise _wrong(option, text, "'true' or 'false'")
    return lower == "true"


def _real(option: Option, text: str) -> float:
    stripped = text.strip()
    if _REAL.fullmatch(stripped) is None:
        raise _wrong(option, text, "a number")
    return float(stripped.rstrip("dDfF"))


def parse_size(text: str) -> int | None:
    """The number of bytes in a string such as `16 kb`; None if it is not a size."""
    match = _QUANTITY.fullmatch(text.strip())
    factor = None if match is None else _SIZES.get(match.group(2).lower())
    if match is None or factor is None or int(match.group(1)) * factor >= 2**63:
        return None
    return int(match.group(1)) * factor


def _size(option: Option, text: str) -> int:
    size = parse_size(text)
    if size is None:
        raise _wrong(option, text, "a size such as '128 mb' (units b, kb, mb, gb, tb)")
    return size


def parse_duration(text: str) -> int | None:
    """The nanoseconds in a duration such as `10 min`; None if the string is not a duration."""
    match = _QUANTITY.fullmatch(text.strip())
    factor = None if match is None else _NANOS.get(match.group(2).lower())
    if match is None or factor is None or int(match.group(1)) >= 2**63:
        return None
    return int(match.group(1)) * factor


def _nanos(option: Option, text: str) -> int:
    nanos = parse_duration(text)
    if nanos is None:
        raise _wrong(option, text, "a duration such as '10 min' (units d, h, min, s, ms, µs, ns)")
    return nanos


def _choice(option: Option, text: str) -> str:
    for choice in option.choices:
        if choice.upper() == text.upper():
            return choice
    raise _wrong(option, text, "one of " + ", ".join(repr(choice) for choice in option.choices))


def _map(option: Option, texts: Mapping[str, str]) -> dict[str, str]:
    text = texts.get(option.name)
    if text is None:
        prefix = option.name + "."
        return {name[len(prefix) :]: value for name, value in texts.items() if name.startswith(prefix)}
    pairs = [part.split(":") for part in text.split(",") if part.strip()]
    if any(len(pair) != 2 for pair in pairs):
        raise _wrong(option, text, "a list such as '0:avro,5:parquet'")
    return {key.strip(): value.strip() for key, value in pairs}
