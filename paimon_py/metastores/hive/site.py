"""Reads the connection settings of a metastore from `hive-site.xml`.

Source: Java `HiveCatalog.createHiveConf`, release 2.0; the files are those of Hadoop's `Configuration`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree as Xml

from paimon_py.errors import OptionError, StorageError
from paimon_py.storage.local_store import LocalStore
from paimon_py.storage.store import join

CONF_DIR = "hive-conf-dir"
_FILE = "hive-site.xml"
_PLACED = re.compile(r"\$\{([^}$\s]+)\}")
_DEPTH = 20
_BYTES_MAX = 16 << 20


def site(options: Mapping[str, str]) -> dict[str, str]:
    """The properties of the file in the directory `hive-conf-dir`; empty without the option.

    `${name}` refers to another property of the file, as in Hadoop; environment variables are not used.

    Raises: OptionError if the file does not exist, or is not a Hadoop configuration.
    """
    directory = options.get(CONF_DIR, "").strip()
    if not directory:
        return {}
    path = join(directory.removeprefix("file://").removeprefix("file:").rstrip("/") or "/", _FILE)
    try:
        found = _properties(LocalStore().get(path))
    except StorageError as error:
        raise _unreadable(directory, f"{path} cannot be read: {error}") from error
    except (Xml.ParseError, ValueError) as error:
        raise _unreadable(directory, f"{path} is not a configuration of Hadoop: {error}") from error
    return {name: _substitute(name, found, directory) for name in found}


def _properties(data: bytes) -> dict[str, str]:
    """Names and values in the file; the last value of a name counts, but no value after a final one."""
    if len(data) > _BYTES_MAX or b"<!ENTITY" in data:
        raise ValueError("it has entities or is larger than 16 MB")
    root = Xml.fromstring(data)
    if root.tag != "configuration":
        raise ValueError(f"its root is <{root.tag}>, not <configuration>")
    found: dict[str, str] = {}
    final: set[str] = set()
    for each in root.iter("property"):
        name = (each.findtext("name") or each.get("name") or "").strip()
        value = each.findtext("value", each.get("value"))
        if name and value is not None and name not in final:
            found[name] = value.strip()
            if (each.findtext("final") or each.get("final") or "").strip().lower() == "true":
                final.add(name)
    return found


def _substitute(name: str, found: Mapping[str, str], directory: str) -> str:
    value = found[name]
    for _ in range(_DEPTH):
        place = next((each for each in _PLACED.finditer(value) if each.group(1) in found), None)
        if place is None:
            return value
        value = value[: place.start()] + found[place.group(1)] + value[place.end() :]
    raise _unreadable(directory, f"property {name!r} refers to itself")


def _unreadable(directory: str, reason: str) -> OptionError:
    return OptionError(f"option {CONF_DIR}: {reason}", option=CONF_DIR, value=directory)
