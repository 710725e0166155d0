"""Encodes errors of paimon_py to send them from an executor to the driver: class name, message and plain attributes.

Decoding runs no code that the data name, since a message can contain strings of the user's data.
"""

from __future__ import annotations

from typing import Any

import msgspec

from paimon_py import errors
from paimon_py.errors import PaimonError
from paimon_py.storage.store import FileMissingError, FileTakenError

_CLASSES: dict[str, type[PaimonError]] = {
    found.__name__: found
    for found in (*vars(errors).values(), FileMissingError, FileTakenError)
    if isinstance(found, type) and issubclass(found, PaimonError)
}


class _ErrorData(msgspec.Struct, frozen=True):
    """An error. `fields`: those attributes that are numbers, strings, bytes or lists of strings."""

    name: str
    message: str
    fields: dict[str, Any]


def error_bytes(error: PaimonError) -> bytes:
    """Encode an error. An internal class is replaced by its nearest public base class, which callers can catch."""
    name = next(cls.__name__ for cls in type(error).__mro__ if _CLASSES.get(cls.__name__) is cls)
    fields = {key: _plain(value) for key, value in vars(error).items() if _is_plain(value)}
    return msgspec.msgpack.encode(_ErrorData(name, _text(str(error)), fields))


def error_from(data: bytes) -> PaimonError:
    """Decode an error that `error_bytes` encoded.

    Raises: msgspec.ValidationError, KeyError for other bytes.
    """
    decoded = msgspec.msgpack.decode(data, type=_ErrorData)
    cls = _CLASSES[decoded.name]
    error = cls.__new__(cls)
    Exception.__init__(error, decoded.message)
    for key, value in decoded.fields.items():
        error.__dict__[key] = tuple(value) if isinstance(value, list) and key != "__notes__" else value
    return error


def _is_plain(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return all(isinstance(one, str) for one in value)
    return value is None or isinstance(value, (bool, int, float, str, bytes))


def _plain(value: object) -> object:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, (list, tuple)):
        return [_text(str(one)) for one in value]
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _text(text: str) -> str:
    """The text with escapes for characters that UTF-8 cannot encode; file names may contain such characters."""
    return text.encode("utf-8", "backslashreplace").decode()
