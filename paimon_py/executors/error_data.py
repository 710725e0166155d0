"""Errors of paimon_py on their way from an executor to the driver: the name of a class, the message and plain fields.

Nothing that comes back is run: a text of the data may stand in the message, or look like an error of ours.
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
    """An error. `fields`: its attributes that are plain values: numbers, texts, bytes and lists of texts."""

    name: str
    message: str
    fields: dict[str, Any]


def error_bytes(error: PaimonError) -> bytes:
    """An error as bytes. One of a class that only paimon_py knows becomes the class that callers can catch."""
    name = next(cls.__name__ for cls in type(error).__mro__ if _CLASSES.get(cls.__name__) is cls)
    fields = {key: _plain(value) for key, value in vars(error).items() if _is_plain(value)}
    return msgspec.msgpack.encode(_ErrorData(name, _text(str(error)), fields))


def error_from(data: bytes) -> PaimonError:
    """The error that `error_bytes` made bytes of.

    Raises: msgspec.ValidationError, KeyError for other bytes.
    """
    told = msgspec.msgpack.decode(data, type=_ErrorData)
    cls = _CLASSES[told.name]
    error = cls.__new__(cls)
    Exception.__init__(error, told.message)
    for key, value in told.fields.items():
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
    """A text without what UTF-8 has no bytes for, as names of files may hold it."""
    return text.encode("utf-8", "backslashreplace").decode()
