"""Puts messages of the library into the words of the command line: commands and options instead of Python calls.

Calls are recognized by their names and arguments, whatever the words around them are. A test walks all messages of the
library, and fails if a call that has a command stays as it is.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

import msgspec

_ANY = "…"


class _Command(msgspec.Struct, frozen=True):
    """The command that does what a call does.

    Attributes:
        text: the command and its first words.
        positions: names of the arguments by position; `--name` for one that is an option of the command.
        options: options by keyword argument; by `keyword=value` for a flag.
    """

    text: str
    positions: tuple[str, ...] = ()
    options: Mapping[str, str] = {}


_COMMANDS: Mapping[str, _Command] = {
    "compact": _Command("compact TABLE", (), {"full=True": "--full", "where": "--where"}),
    "expire_snapshots": _Command(
        "expire TABLE", (),
        {"dry_run=True": "--dry-run", "older_than": "--older-than", "retain_max": "--retain-max"},
    ),
    "remove_orphans": _Command("orphans TABLE", (), {"dry_run=False": "--delete", "older_than": "--older-than"}),
    "publish_iceberg": _Command("iceberg TABLE publish"),
    "doctor": _Command("doctor TABLE", (), {"deep=True": "--deep"}),
    "rescale": _Command("rescale TABLE", ("BUCKETS",)),
    "restore": _Command("restore TABLE", ("--to",)),
    "rollback_to": _Command("rollback TABLE", ("SNAPSHOT",)),
    "create_tag": _Command("tag TABLE create", ("NAME", "--snapshot"), {"snapshot_id": "--snapshot"}),
    "delete_tag": _Command("tag TABLE delete", ("NAME",)),
    "delete_branch": _Command("branch TABLE delete", ("NAME",)),
    "fast_forward": _Command("branch TABLE fast-forward", ("NAME",), {"discard=True": "--discard"}),
    "reset_consumer": _Command("consumers TABLE reset", ("NAME", "SNAPSHOT")),
    "delete_consumer": _Command("consumers TABLE delete", ("NAME",)),
    "drop_table": _Command("drop", ("TABLE",)),
    "databases": _Command("ls WAREHOUSE"),
    "tables": _Command("ls WAREHOUSE", ("DATABASE",)),
    "import_files": _Command("import WAREHOUSE", ("DB.TABLE", "SOURCE"), {"copy=True": "--copy"}),
    "partitions": _Command("partitions TABLE"),
    "scan": _Command(
        "head TABLE", (),
        {"snapshot_id": "--snapshot", "tag": "--tag", "where": "--where", "columns": "--columns", "limit": "--limit"},
    ),
    "changes": _Command("diff TABLE", ("BEFORE", "AFTER"), {"mode": "--mode"}),
    "stream": _Command("tail TABLE", (), {"from_": "--from", "consumer_id": "--consumer"}),
}  # fmt: skip
"""Commands by the methods of `Table` and `Catalog` that they call."""
_CHANGES: Mapping[str, tuple[str, str]] = {
    "SetOption": ("--set", "{}={}"), "RemoveOption": ("--unset", "{}"), "AddColumn": ("--add", "{} {}"),
    "UpdateColumnType": ("--type", "{} {}"), "RenameColumn": ("--rename", "{}={}"), "DropColumn": ("--drop", "{}"),
}  # fmt: skip
"""Options of `alter` by schema change, with the arguments of the change."""
_OPTIONS: Mapping[str, str] = {
    "mode": "--mode", "from_": "--from", "where": "--where", "columns": "--columns", "limit": "--limit",
    "delimiter": "--delimiter", "format": "--kind", "copy": "--copy", "user": "--user", "identifier": "--identifier",
    "database": "--database", "discard": "--discard", "blobs": "--blobs", "consumer_id": "--consumer",
    "allow_narrowing": "--allow-narrowing", "partition_by": "--partition-by", "primary_key": "--primary-key",
}  # fmt: skip
"""Options of commands by keyword argument."""
_PHRASES: tuple[tuple[str, str], ...] = (
    (r": Catalog\.open creates it unless create=False", ""),
    (r"; table\.refresh\(\) (?:sees|shows) [^;.]*", ""),
    (r"; if it is there already, table\.refresh\(\)", ""),
    (r"\b([Cc])all (?:table\.)?refresh\(\)(?:, or open the table again)?", r"\1all the command again"),
    (r"(?:pass )?UpdateColumnType\(…, allow_narrowing=True\)", "add --allow-narrowing"),
    (r"\bthe from_ of a stream\b", "--from"),
    (r"\ba datetime or (?=a position)", "a time or "),
    (r"\btable\.snapshot\(\)\.id\b", "snapshot_id of paimon-py show TABLE"),
    (r"\w+= \((--[a-z-]+)\)", r"\1"),  # messages that name both
    (r"\b(retain|max)_(min|max|deletes)\b", r"--\1-\2"),
    (r"\bolder_than\b(?!=)", "--older-than"),
    (r"timedelta\(days=(\d+)\)(?: or '\1d')?", r"\1d"),
    (r"\bcall (?=paimon-py)", "run "),
    (r'\bcatalog\.sql\("([^"]*)"\)', r'paimon-py sql WAREHOUSE "\1"'),
    (r"; a function casts: lambda rows: [^;]*", ""),
    (r"\bpass a datetime\.\w+, or (?:ISO text|a string) such as (?='\d)", "give text such as "),
    (r"\bpass a datetime\.(datetime|date|time)\b", r"give a \1"),
    (r"\bpass a str\b", "give text in 'single quotes'"),
    (r"\bpass bytes\b", "give bytes such as X'00ff'"),
    (r"\bpass True or False\b", "give TRUE or FALSE"),
    (r"\bpass an int or a decimal\.Decimal\b", "give a number"),
    (r"\bpass (?=an? (?:number|whole number|list|mapping)\b)", "give "),
    (r"\bis_null\(\)", "IS NULL"),
    (r"\bis_not_null\(\)", "IS NOT NULL"),
)


class _Call(msgspec.Struct, frozen=True):
    """A call in a message: its arguments as they stand there, and where it ends."""

    positional: tuple[str, ...]
    keywords: Mapping[str, str]
    end: int


def in_commands(text: str) -> str:
    """A message with the command or option that does what it advises; calls without a command stay as they are."""
    text = _with_commands(text)
    for pattern, wording in _COMPILED:
        text = pattern.sub(wording, text)
    text = _COLUMN.sub(lambda found: ".".join(_STEP.findall(found[1])) + found[2].replace(".", " "), text)
    return _KEYWORD.sub(_option, text)


def _with_commands(text: str) -> str:
    parts, at = [], 0
    for found in _VERB.finditer(text):
        call = None if found.start() < at else _parse_call(text, found.end())
        words = None if call is None else _command(found[1], call)
        if call is not None and words is not None and not re.match(r"\.\w", text[call.end :]):
            parts += [text[at : found.start()], words]
            at = call.end
    return "".join([*parts, text[at:]])


def _command(verb: str, call: _Call) -> str | None:
    """The command that does what a call does, None if there is none."""
    if verb == "alter":
        changes = [_change(each) for each in call.positional]
        known = [each for each in changes if each is not None]
        return " ".join(["paimon-py alter TABLE", *known]) if known and len(known) == len(changes) else None
    command = _COMMANDS[verb]
    if len(call.positional) > len(command.positions) or (verb == "changes" and not call.positional):
        return None
    words = [f"paimon-py {command.text}"]
    for value, name in zip(call.positional, command.positions, strict=False):
        words += [name, _word(value)] if name.startswith("--") else [_word(value, name)]
    for keyword, value in call.keywords.items():
        option = command.options.get(keyword)
        flag = command.options.get(f"{keyword}={value}")
        if option is None and flag is None:
            return None
        words.append(flag or (f"{option}" if value == _ANY else f"{option} {_word(value)}"))
    return " ".join(words)


def _change(text: str) -> str | None:
    """The option of `alter` that makes a schema change."""
    name, _, _ = text.partition("(")
    call = _parse_call(text, len(name) + 1) if name in _CHANGES else None
    if call is None:
        return None
    option, wording = _CHANGES[name]
    count = wording.count("{")
    values = [_literal(value) for value in call.positional]
    if values[:1] == [_ANY] or len(values) < count:
        return option
    return f"{option} {shlex.quote(wording.format(*values[:count]))}"


def _word(value: str, name: str = "VALUE") -> str:
    """An argument as a word of a shell; a description follows the name of the argument in parentheses."""
    literal = _literal(value)
    if literal == _ANY:
        return name
    if literal != value or re.fullmatch(r"[\w.-]+", value):
        return shlex.quote(literal)
    return f"{name} ({value})"


def _literal(value: str) -> str:
    is_quoted = len(value) > 1 and value[0] in "'\"" and value[-1] == value[0]
    return value[1:-1] if is_quoted else value


def _option(found: re.Match[str]) -> str:
    value = found[2]
    flag = "" if value in ("True", "") else f" {_word(value)}"
    return f"{_OPTIONS[found[1]]}{'' if value == _ANY else flag}"


def _parse_call(text: str, begin: int) -> _Call | None:
    """The call whose arguments begin there; None if its parenthesis is not closed."""
    ends = list(_ends(text, begin))
    if not ends or text[ends[-1]] != ")":
        return None
    starts = [begin, *(end + 1 for end in ends)]
    arguments = [text[start:end].strip() for start, end in zip(starts, ends, strict=False)]
    positional, keywords = [], {}
    for argument in filter(None, arguments):
        named = re.match(r"(\w+)=(?!=)", argument)
        if named is None:
            positional.append(argument)
        else:
            keywords[named[1]] = argument[named.end() :]
    return _Call(tuple(positional), keywords, ends[-1] + 1)


def _ends(text: str, begin: int) -> Iterator[int]:
    """The positions at which the arguments of a call end: its commas, and its closing parenthesis."""
    depth, quote = 0, ""
    for at in range(begin, len(text)):
        char = text[at]
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}" and depth:
            depth -= 1
        elif char == "," and not depth:
            yield at
        elif char == ")":
            yield at
            return


_VERB = re.compile(rf"(?<![\w.])(?:(?:[Tt]able|[Cc]atalog)\.)?({'|'.join((*_COMMANDS, 'alter'))})\(")
_KEYWORD = re.compile(rf"(?<![\w.(-])({'|'.join(_OPTIONS)})=('[^']*'|…|True|(?=[ ,;.]|$))")
_COLUMN = re.compile(r'\bcol\(("(?:[^"\\]|\\.)+"(?:, "(?:[^"\\]|\\.)+")*)\)((?:\.(?=IS ))?)')
_STEP = re.compile(r'"((?:[^"\\]|\\.)+)"')
_COMPILED = tuple((re.compile(pattern), wording) for pattern, wording in _PHRASES)
