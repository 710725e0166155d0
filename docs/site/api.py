"""Write the public names with their signatures to docs/public-api.txt: `python docs/site/api.py "words"`.

The words must be in CHANGELOG.md, in the line that tells users of the change. tests/house/test_public_api.py compares
the file with the package, so that no name and no parameter changes by accident.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "public-api.txt"
CHANGELOG = ROOT / "CHANGELOG.md"
MODULES = (
    "paimon_py", "paimon_py.cdc", "paimon_py.distributed", "paimon_py.env", "paimon_py.executors", "paimon_py.metrics",
    "paimon_py.service", "paimon_py.spark", "paimon_py.types",
)  # fmt: skip
ENV_NAMES = ["Clock", "Env", "Ids", "Pool", "SerialPool", "SpillFile", "SpillPlace", "SystemClock", "ThreadPool"]
"""What `paimon_py.env`, which has no `__all__`, promises."""


def api_text() -> str:
    """The public names of all modules, each with its signature, one a line."""
    seen: dict[int, str] = {}
    lines: list[str] = []
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in sorted(getattr(module, "__all__", ENV_NAMES)):
            value = getattr(module, name)
            path = f"{module_name}.{name}"
            if _is_class(value) or inspect.isfunction(value):
                first = seen.setdefault(id(value), path)
                if first != path:
                    lines.append(f"{path} is {first}")
                    continue
            lines += _lines(path, value)
    return "\n".join(lines) + "\n"


def page_text(words: str) -> str:
    """The whole file; `words`: of the line of CHANGELOG.md that announces the latest change."""
    body = api_text()
    return f"announced: {words}\ndigest: {digest(body)}\n\n{body}"


def digest(body: str) -> str:
    """A short digest, which changes with every change of the names."""
    return hashlib.sha256(body.encode()).hexdigest()[:16]


def is_announced(words: str) -> bool:
    """Whether CHANGELOG.md has these words, whatever its line breaks."""
    return len(words) > 15 and " ".join(words.split()) in " ".join(CHANGELOG.read_text(encoding="utf-8").split())


def _lines(path: str, value: Any) -> Iterator[str]:
    if _is_class(value):
        bases = [base.__name__ for base in value.__bases__ if _is_promised(base)]
        yield f"class {path}({', '.join(bases)})" if bases else f"class {path}"
        yield from _members(path, value)
    elif inspect.isroutine(value):
        yield f"{path}{_signature(value)}"
    elif isinstance(value, (str, int)):
        yield f"{path} = {value!r}"
    else:
        yield f"{path}: {'a module' if inspect.ismodule(value) else 'a value or type'}"


def _is_class(value: Any) -> bool:
    """Whether a value is a class; Python 3.10 also calls types such as `Callable[[int], str]` classes."""
    return inspect.isclass(value) and not isinstance(value, types.GenericAlias)


def _is_promised(base: type) -> bool:
    """Whether users may rely on a base: errors, and what Python gives."""
    return base.__module__ == "paimon_py.errors" or (base.__module__ == "builtins" and base is not object)


def _is_ours(base: type) -> bool:
    return base.__module__.startswith("paimon_py")


def _members(path: str, kind: type) -> Iterator[str]:
    hints: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if _is_ours(base):
            hints.update(vars(base).get("__annotations__", {}))
    fields = {name for name in hints if not name.startswith("_")}
    for name, shown in (("__init__", path), ("__call__", f"{path}.__call__")):
        owner = next((base for base in kind.__mro__ if name in vars(base)), object)
        if _is_ours(owner) and (owner is kind or not _is_promised(owner)):
            yield f"  {shown}{_signature(vars(owner)[name])}"
    for name in sorted({*fields, *(name for name in dir(kind) if not name.startswith("_"))}):
        owner = next((base for base in kind.__mro__ if name in vars(base)), kind)
        if name not in fields and not _is_ours(owner):
            continue
        value = inspect.getattr_static(kind, name, None)
        if isinstance(value, (staticmethod, classmethod)):
            yield f"  {path}.{name}{_signature(value.__func__)} ({type(value).__name__})"
        elif inspect.isfunction(value):
            yield f"  {path}.{name}{_signature(value)}"
        elif name in fields:
            yield f"  {path}.{name}: {_hint(hints[name])}{_default(kind, name)}"
        else:
            asked = getattr(value, "fget", None) or getattr(value, "func", None)
            hint = getattr(asked, "__annotations__", {}).get("return", "")
            yield f"  {path}.{name}: {hint}".rstrip(": ")


def _hint(hint: Any) -> str:
    """An annotation as it is written; named tuples keep theirs as references."""
    return str(getattr(hint, "__forward_arg__", hint))


def _default(kind: Any, name: str) -> str:
    names, values = getattr(kind, "__struct_fields__", ()), getattr(kind, "__struct_defaults__", ())
    defaults = dict(zip(reversed(names), reversed(values), strict=False))
    shown = repr(defaults[name]) if name in defaults else ""
    return "" if name not in defaults or shown == "NODEFAULT" else f" = {_plain(shown)}"


def _signature(function: Any) -> str:
    return _plain(str(inspect.signature(function)))


def _plain(text: str) -> str:
    """Texts without addresses, and with annotations as they are written."""
    unquoted = re.sub(r"""(: |-> )(['"])(.*?)\2(?=[,) =]|$)""", r"\1\3", text)
    return re.sub(r" at 0x[0-9a-f]+", "", unquoted).replace("\n", " ")


if __name__ == "__main__":
    given = " ".join(sys.argv[1:])
    if not is_announced(given):
        raise SystemExit("give words of the line of CHANGELOG.md that tells users of the change (16 letters or more)")
    PAGE.write_text(page_text(given), encoding="utf-8")
