"""Converts geometries as databases store them (WKB, EWKB) to GeoJSON. Pure.

Source: Java `MySqlTypeUtils.convertWkbArray`, whose output format this is; OGC 06-103r4, and PostGIS for the flags.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import msgspec

_KINDS = ("Point", "LineString", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon", "GeometryCollection")
_HAS_Z, _HAS_M, _HAS_SRID = 0x80000000, 0x40000000, 0x20000000
_DEEPEST = 32


def geo_json(data: bytes, srid: int = 0) -> str:
    """The geometry as GeoJSON, with the id of its reference system from the bytes or the caller, else 0.

    Raises: ValueError for invalid bytes, and for geometries with measures, which GeoJSON cannot represent.
    """
    reader = _Reader(data)
    shape, said = reader.shape(0)
    if reader.place != len(data):
        raise ValueError("there are bytes after the geometry")
    found: dict[str, Any] = {name: part for name, part in shape.items() if name != "type"}
    return msgspec.json.encode({**found, "type": shape["type"], "srid": said or srid}).decode()


def of_mysql(data: bytes) -> str:
    """Convert a geometry in MySQL's own format: the id of the reference system, then WKB."""
    if len(data) < 4:
        raise ValueError("not a MySQL geometry")
    return geo_json(data[4:], int.from_bytes(data[:4], "little"))


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self.place, self._order = data, 0, "<"

    def _take(self, form: str) -> tuple[Any, ...]:
        size = struct.calcsize(self._order + form)
        part = self._data[self.place : self.place + size]
        if len(part) != size:
            raise ValueError("the geometry ends too early")
        self.place += size
        return struct.unpack(self._order + form, part)

    def _count(self) -> int:
        found: int = self._take("I")[0]
        return found

    def shape(self, depth: int) -> tuple[dict[str, Any], int]:
        """The next geometry as a GeoJSON object, and its reference system, 0 for none."""
        order = self._take("B")[0]
        if order > 1 or depth > _DEEPEST:
            raise ValueError("not a geometry in WKB")
        self._order = "<" if order else ">"
        code = self._count()
        srid = self._count() if code & _HAS_SRID else 0
        plain = code & ~(_HAS_Z | _HAS_M | _HAS_SRID)
        family, kind = divmod(plain, 1000)
        if code & _HAS_M or family > 1 or not 1 <= kind <= len(_KINDS):
            raise ValueError(f"a geometry of kind {code} cannot be represented in GeoJSON")
        width = 3 if code & _HAS_Z or family else 2
        name = _KINDS[kind - 1]
        if name == "GeometryCollection":
            return {"geometries": [self.shape(depth + 1)[0] for _ in range(self._count())], "type": name}, srid
        if name.startswith("Multi"):
            parts = [self.shape(depth + 1)[0] for _ in range(self._count())]
            if any(part["type"] != name.removeprefix("Multi") for part in parts):
                raise ValueError(f"a {name} of other parts")
            return {"type": name, "coordinates": [part["coordinates"] for part in parts]}, srid
        return {"type": name, "coordinates": self._coordinates(name, width)}, srid

    def _coordinates(self, name: str, width: int) -> list[Any]:
        if name == "Point":
            point = self._take("d" * width)
            return [] if all(map(math.isnan, point)) else [_number(part) for part in point]
        if name == "LineString":
            return [[_number(part) for part in self._take("d" * width)] for _ in range(self._count())]
        return [self._coordinates("LineString", width) for _ in range(self._count())]


def _number(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("a coordinate that is not a number")
    return int(value) if value.is_integer() and abs(value) < 2**53 else value
