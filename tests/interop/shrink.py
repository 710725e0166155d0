"""Makes a failing script small, a random one by its seed or a hand-written one by its name:

    PYTHONPATH=.:tests:tests/golden:tests/interop:tests/interop/oracle python -m shrink 17
"""

from __future__ import annotations

import dataclasses
import pathlib
import re
import sys
import tempfile
from collections.abc import Callable, Iterator

import engine_cells
import engine_play
import engine_scripts
import oracle
import pyarrow as pa
import table_play
import table_scripts
import wide_scripts
from engine_scripts import Script

TABLES = {one.about: one for one in (*table_scripts.cells(), *table_scripts.of_keys(), *map(table_scripts.drawn, range(150)), *map(wide_scripts.wide, range(200)))}


def shrink(script: Script, fails: Callable[[Script], bool]) -> Script:
    """A smaller script that still fails: fewer steps, rows, columns and options, tried until nothing more can go."""
    smaller = True
    while smaller:
        smaller = False
        for candidate in _candidates(script):
            if fails(candidate):
                script, smaller = candidate, True
                break
    return script


def _candidates(script: Script) -> Iterator[Script]:
    steps = script.steps
    for half in (steps[len(steps) // 2 :], steps[: len(steps) // 2]):
        if 0 < len(half) < len(steps):
            yield dataclasses.replace(script, steps=half)
    for number in reversed(range(len(steps))):
        yield dataclasses.replace(script, steps=steps[:number] + steps[number + 1 :])
    for name, _ in script.columns:
        if name not in script.primary_key:
            yield _without(script, name)
    for option in script.options:
        yield dataclasses.replace(script, options={key: value for key, value in script.options.items() if key != option})
    for number, (verb, *rest) in enumerate(steps):
        if verb == "write":
            for row in range(len(rest[0])):
                left = rest[0][:row] + rest[0][row + 1 :]
                yield dataclasses.replace(script, steps=[*steps[:number], ("write", left), *steps[number + 1 :]])
        elif verb == "rounds":
            yield dataclasses.replace(script, steps=[*steps[:number], *(("write", rows) for rows in rest[0]), *steps[number + 1 :]])


def _without(script: Script, name: str) -> Script:
    """The script without a column, its options and its values."""
    options = {key: value for key, value in script.options.items() if not key.startswith(f"fields.{name}.") and name not in value.split(",")}
    steps = []
    for verb, *rest in script.steps:
        if verb == "write":
            rest = [_rows_without(rest[0], name)]
        elif verb == "overwrite":
            rest = [rest[0], _rows_without(rest[1], name)]
        elif verb == "rounds":
            rest = [[_rows_without(rows, name) for rows in rest[0]]]
        elif verb == "alter" and rest[0][1] == name:
            continue
        steps.append((verb, *rest))
    return dataclasses.replace(script, columns=[c for c in script.columns if c[0] != name], options=options, steps=steps)


def _rows_without(rows: list[dict], name: str) -> list[dict]:
    return [{key: value for key, value in row.items() if key != name} for row in rows]


def complaint(java: oracle.Session, script: Script, turns=engine_play.TURNS) -> str | None:
    """What is wrong with a script, None if all agree or Java does not take it."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            tables = engine_play.play(java, pathlib.Path(folder), script, turns)
            checks = table_play if script.about in TABLES else engine_play
            checks.check(script, tables)
        except AssertionError as error:
            return str(error)
        except oracle.OracleError:
            return None
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, NotImplementedError, pa.ArrowException) as error:
            return f"{type(error).__name__}: {error}"
    return None


def kind_of(text: str | None) -> str | None:
    """A complaint without its numbers and details."""
    return None if text is None else re.sub(r"\d+", "", text.partition(":")[0])


def main() -> None:
    name = sys.argv[1]
    cells = [*engine_cells.every(), *TABLES.values()]
    script = engine_scripts.script(int(name)) if name.isdigit() else next(s for s in cells if s.about == name)
    with oracle.Session(version="2.0.0", tz="UTC") as java:
        first = complaint(java, script)
        if first is None:
            print("all agree")
            return
        turns = next((two for turn in ("o", "oj", "jo") if complaint(java, script, two := ("j", turn))), engine_play.TURNS)
        turns = ("j",) if complaint(java, script, ("j",)) else turns
        wanted = kind_of(complaint(java, script, turns))
        small = shrink(script, lambda one: kind_of(complaint(java, one, turns)) == wanted)
        print(small.text(), complaint(java, small, turns), turns, sep="\n")


if __name__ == "__main__":
    main()
