"""Attributes that are computed on first use, without a lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class lazy_property(Generic[T]):
    """Computes an attribute on first use, and stores the value in the instance.

    `functools.cached_property` of Python 3.10 and 3.11 holds one lock for all instances of a class while it computes:
    threads wait for one another's tables, and a child that was forked meanwhile waits for ever. Here no thread waits.
    Two threads that read one instance at the same time may both compute; every caller gets the value stored first.

    Cost: once computed, the attribute is found in the instance and this descriptor is not called.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> lazy_property[T]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> lazy_property[T] | T:
        if instance is None:
            return self
        value: T = instance.__dict__.setdefault(self._name, self._compute(instance))
        return value
