"""Puts messages of the library into the words of the command line: commands and options instead of Python calls."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

_Wording = str | Callable[[re.Match[str]], str]


def _set_option(found: re.Match[str]) -> str:
    return f"paimon-py alter TABLE --set {shlex.quote(f'{found[1]}={found[2]}')}"


_WORDINGS: tuple[tuple[str, _Wording], ...] = (
    (r": Catalog\.open creates it unless create=False", ""),
    (r"; table\.refresh\(\) sees columns that others added", ""),
    (r"; if it is there already, table\.refresh\(\)", ""),
    (r"add it with table\.alter\(AddColumn\(…\)\)", "add it with paimon-py alter TABLE --add"),
    (r"pass UpdateColumnType\(…, allow_narrowing=True\)", "add --allow-narrowing"),
    (r"the from_ of a stream must be (.*) a datetime or a position", r"--from must be \1 a time or a position"),
    (r"(?:table\.)?alter\(SetOption\('([^']+)', '([^']*)'\)\)", _set_option),
    (r"table\.alter\(RemoveOption\('([^']+)'\)\)", r"paimon-py alter TABLE --unset \1"),
    (r"compact\(where=…\)", "compact --where"),
    (r"table\.compact\(full=True\)", "paimon-py compact TABLE --full"),
    (r"table\.compact\(\)", "paimon-py compact TABLE"),
    (r"table\.expire_snapshots\(\)", "paimon-py expire TABLE"),
    (r"table\.remove_orphans\(dry_run=False\)", "paimon-py orphans TABLE --delete"),
    (r"table\.publish_iceberg\(\)", "paimon-py iceberg TABLE publish"),
    (r"table\.delete_branch\('([^']+)'\)", r"paimon-py branch TABLE delete \1"),
    (r"table\.delete_consumer\(name\)", "paimon-py consumers TABLE delete NAME"),
    (r"table\.reset_consumer\('([^']+)', ([^)]+)\)", r"paimon-py consumers TABLE reset \1 \2"),
    (r"a stream with consumer_id='([^']+)' creates one", r"paimon-py tail TABLE --consumer \1 creates one"),
    (r"table\.rollback_to\((\d+)\)", r"paimon-py rollback TABLE \1"),
    (r"table\.rollback_to\((a snapshot or tag that can be read)\)", r"paimon-py rollback TABLE, to \1"),
    (r"\w+= \((--[a-z-]+)\)", r"\1"),  # messages that name both
    (r"give delimiter=", "give --delimiter "),
    (r"database= says", "--database says"),
    (r"copy=True", "--copy"),
    (r"give format=", "give --kind "),
    (r"\b(retain|max)_(min|max|deletes)\b", r"--\1-\2"),
)  # fmt: skip
_COMPILED = tuple((re.compile(pattern), wording) for pattern, wording in _WORDINGS)


def in_commands(text: str) -> str:
    """A message with the command or option that does what it advises; calls without a command stay as they are."""
    for pattern, wording in _COMPILED:
        text = pattern.sub(wording, text)
    return text
