"""Checks that run before a method of `Table` is called.

By default, a method that changes something checks that the table at the path is still the one that was opened, and that
no rollback or fast-forward was left unfinished. Methods that need less declare it with a decorator, so that no method
can forget the check.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from paimon_py.arguments import with_location
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.schema import TableSchema

V = TypeVar("V", bound=Callable[..., Any])


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """The checks before a method is called.

    Attributes:
        same_table: check that the table is the one that was opened. Cost: a list, and a get the first time.
        whole_history: check that no rollback or fast-forward is running or was left unfinished. Cost: a stat.
    """

    same_table: bool = True
    whole_history: bool = True


_RULE = "table_rule"


def reads(verb: V) -> V:
    """Mark a method that changes nothing."""
    return _with_rule(verb, Rule(same_table=False, whole_history=False))


def commits(verb: V) -> V:
    """Mark a method whose only effects are commits, which check everything when they are published."""
    return _with_rule(verb, Rule(same_table=False, whole_history=False))


def cuts_history(verb: V) -> V:
    """Mark a method that resumes an unfinished rollback or fast-forward, or checks for one by itself."""
    return _with_rule(verb, Rule(whole_history=False))


def _with_rule(verb: V, rule: Rule) -> V:
    setattr(verb, _RULE, rule)
    return verb


def guard(table: Any, verb: Callable[..., Any]) -> None:
    """Run the checks of a method.

    Raises:
        TableNotFoundError: the table was dropped, renamed or recreated.
        CommitConflictError: a rollback or fast-forward is running, or was left unfinished.
    """
    rule: Rule = getattr(verb, _RULE, Rule())
    root: TableRoot = table._root
    if rule.same_table:
        root.require_same(table._schema)
    if rule.whole_history and root.history is None and root.cuts.exists():
        root.cuts.refuse()


at_table_door = with_location(lambda table: table._root.path, lambda table: table._root.schemas.latest(), guard)
"""Class decorator for classes that contain methods of `Table`."""


class TableVerbs:
    """Base of the classes that contain methods of `Table`: the table, and the schema it was opened with."""

    _root: TableRoot
    _schema: TableSchema

    @property
    def _open_table(self) -> OpenTable:
        """The table and its schema as one value."""
        return OpenTable(self._root, self._schema)

    @property
    def _newest(self) -> TableSchema:
        """The latest schema: maintenance uses it, whatever options the table object was opened with.

        Cost: none after `guard`; otherwise a list.
        """
        return self._root.newest(self._schema)

    @property
    def _newest_table(self) -> OpenTable:
        """The table under its latest schema. Cost: as `_newest`"""
        return self._open_table.under(self._newest)

    @property
    def _rules(self) -> TableSchema:
        """The schema for rewriting rows: the latest if its columns are those of this table object, otherwise the
        object's own.

        Cost: as `_newest`
        """
        newest = self._newest
        return newest if newest.fields == self._schema.fields else self._schema
