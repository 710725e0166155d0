"""The group of all commands; every error becomes one line and an exit code."""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click
import pyarrow as pa
from click.shell_completion import get_completion_class

import paimon_py
from paimon_py.cli.care import branch, compact, expire, rescale, tag
from paimon_py.cli.cleaning import doctor, orphans
from paimon_py.cli.definitions import alter, create, drop
from paimon_py.cli.history import consumers, history, restore, rollback
from paimon_py.cli.iceberg import iceberg
from paimon_py.cli.import_files import import_files
from paimon_py.cli.listings import files, list_tables, partitions, show, show_schema, snapshots
from paimon_py.cli.load import delete, load
from paimon_py.cli.output import on_one_line
from paimon_py.cli.query import sql
from paimon_py.cli.read import diff, head, tail
from paimon_py.cli.report import report
from paimon_py.cli.service import care
from paimon_py.cli.terminal import shown_log
from paimon_py.cli.top import top
from paimon_py.cli.tree import tree
from paimon_py.cli.words import in_commands
from paimon_py.env import environment
from paimon_py.errors import PaimonError
from paimon_py.service.memory import restart_frugally

NAME = "paimon-py"
_COMPLETE = "_PAIMON_PY_COMPLETE"


_OTHER_WORDS = {
    **dict.fromkeys(("undo", "revert", "reset"), "restore, or rollback"),
    **dict.fromkeys(("list", "tables", "databases"), "ls"),
    **dict.fromkeys(("describe", "desc", "info", "properties"), "show"),
    **dict.fromkeys(("log", "commits"), "history"),
    **dict.fromkeys(("cat", "read", "scan", "select", "query"), "head, or sql"),
    **dict.fromkeys(("watch", "stream", "follow", "changes"), "tail, or diff"),
    **dict.fromkeys(("write", "insert", "append", "upsert"), "load"),
    **dict.fromkeys(("optimize", "rewrite"), "compact"),
    **dict.fromkeys(("vacuum", "clean", "gc"), "expire, and orphans"),
    **dict.fromkeys(("check", "fsck", "repair"), "doctor"),
    **dict.fromkeys(("maintain", "serve", "run"), "care"),
    "truncate": "delete --where TRUE",
    "remove": "delete for rows, or drop for a table",
    "rm": "drop",
}
"""Names from other tools, and the commands that correspond to them."""


class _Commands(click.Group):
    """Commands that know their names in other tools."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in _OTHER_WORDS and args[0] not in self.commands:
            ctx.fail(f"No such command {args[0]!r}; write {NAME} {_OTHER_WORDS[args[0]]}.")
        return super().resolve_command(ctx, args)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(paimon_py.__version__, prog_name=NAME)
@click.option("--verbose", "-v", is_flag=True, help="Show the log on stderr: commits, retries, compactions, expiry.")
@click.pass_context
def commands(context: click.Context, verbose: bool) -> None:
    """Inspect, read, load and maintain Apache Paimon tables.

    TABLE is a path or URL, or with --warehouse a name such as db.t.
    """
    if verbose:
        context.with_resource(shown_log())


@commands.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the shell completion of the commands: eval "$(paimon-py completion bash)"."""
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(commands, {}, NAME, _COMPLETE).source())


_COMMANDS = (
    list_tables, show, show_schema, snapshots, history, files, partitions, tree, top, report, doctor, head, diff,
    tail, sql, load, delete, import_files, care, compact, rescale, expire, orphans, tag, branch, create, alter, drop,
    restore, rollback, consumers, iceberg,
)  # fmt: skip
_EXAMPLES = {
    "ls": ["ls warehouse", "ls s3://lake/wh shop -o s3.endpoint=https://s3.example"],
    "show": ["show warehouse/shop.db/orders", "show shop.orders -w warehouse --format json"],
    "schema": ["schema warehouse/shop.db/orders"],
    "snapshots": ["snapshots warehouse/shop.db/orders"],
    "history": ["history warehouse/shop.db/orders -n 5"],
    "files": ["files warehouse/shop.db/orders --format csv"],
    "partitions": ["partitions warehouse/shop.db/orders"],
    "tree": ["tree warehouse/shop.db/orders --limit 10"],
    "top": ["top warehouse/shop.db/orders", "top warehouse --once"],
    "report": ["report warehouse --html report.html", "report s3://lake/wh --html shop.html -d shop"],
    "doctor": ["doctor warehouse/shop.db/orders --deep"],
    "head": [
        "head warehouse/shop.db/orders -n 5 -c id,price --where 'price > 10'",
        "head 'warehouse/shop.db/orders$audit_log' --snapshot 3",
    ],
    "diff": ["diff warehouse/shop.db/orders 1 3", "diff warehouse/shop.db/orders before-cleaning"],
    "tail": ["tail warehouse/shop.db/orders --from full --until now --format json"],
    "sql": [
        "sql warehouse 'SELECT city, sum(price) FROM shop.orders GROUP BY city'",
        "sql warehouse 'SELECT * FROM orders FOR VERSION AS OF 3 LIMIT 5' -d shop --format csv",
    ],
    "load": [
        "load warehouse/shop.db/orders new.csv more.parquet",
        "load shop.orders -w warehouse a.txt --kind csv --null NA",
    ],
    "delete": [
        "delete warehouse/shop.db/orders --where 'price < 0'",
        "delete shop.orders -w warehouse --where \"day < today() - INTERVAL 30 DAY\" --yes",
    ],
    "import": ["import warehouse shop.orders s3://old/orders/ --dry-run", "import warehouse shop.orders old --copy"],
    "care": [
        "care warehouse --every 10m --budget-bytes 20gb --health 8080",
        "care s3://lake/wh --once -d shop --format json -o s3.endpoint=https://s3.example",
    ],
    "compact": ["compact warehouse/shop.db/orders --full -p month=3"],
    "rescale": ["rescale warehouse/shop.db/orders 8", "rescale warehouse/shop.db/orders 8 -p month=3"],
    "expire": ["expire warehouse/shop.db/orders --retain-min 1 --retain-max 10 --older-than 1d --dry-run"],
    "orphans": ["orphans warehouse/shop.db/orders", "orphans warehouse/shop.db/orders --older-than 2d --delete --yes"],
    "tag": ["tag warehouse/shop.db/orders", "tag warehouse/shop.db/orders create before-cleaning --retain 7d"],
    "branch": ["branch warehouse/shop.db/orders create b1 --from before-cleaning"],
    "create": [
        "create warehouse/shop.db/orders --columns 'id BIGINT NOT NULL, price DECIMAL(8, 2)' -k id --option bucket=4",
        "create shop.orders -w s3://lake/wh --columns 'id BIGINT, day DATE' -p day -o s3.endpoint=https://s3.example",
    ],
    "alter": [
        "alter warehouse/shop.db/orders --add 'note STRING' --after price --rename price=cost",
        "alter warehouse/shop.db/orders --set snapshot.num-retained.max=20 --unset snapshot.time-retained",
    ],
    "drop": ["drop warehouse/shop.db/orders"],
    "restore": ["restore warehouse/shop.db/orders --to 3", "restore shop.orders -w warehouse --to before-cleaning"],
    "rollback": ["rollback warehouse/shop.db/orders 3", "rollback warehouse/shop.db/orders before-cleaning --yes"],
    "consumers": ["consumers warehouse/shop.db/orders", "consumers warehouse/shop.db/orders reset loader 7"],
    "iceberg": ["iceberg warehouse/shop.db/orders", "iceberg warehouse/shop.db/orders publish"],
    "completion": ["completion zsh"],
}
"""The examples in the help of each command."""

for _command in _COMMANDS:
    commands.add_command(_command)
for _name, _examples in _EXAMPLES.items():
    commands.commands[_name].epilog = "\b\nExamples:\n" + "\n".join(f"  {NAME} {example}" for example in _examples)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; `arguments` default to those of the process.

    Returns: 0, 1 for an error (one line on stderr), 2 for wrong usage, 130 after an interrupt.
    """
    if arguments is None and sys.argv[1:2] == [care.name]:
        restart_frugally(environment())
    _set_encodings()
    try:
        with _short_warnings():
            code = commands.main(arguments, prog_name=NAME, complete_var=_COMPLETE, standalone_mode=False)
    except click.UsageError as error:
        error.show()
        return 2
    except click.Abort as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            return _fail(f"interrupted: {error.__cause__}".removesuffix(": "), 130)
        return _fail("stopped: nothing was changed; --yes continues")
    except click.ClickException as error:
        return _fail(error.format_message())
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else _text(error))
    except (PaimonError, pa.ArrowException) as error:
        return _fail(_text(error))
    except MemoryError as error:
        return _fail(f"this needs more memory than the process gets: {error or 'it is used up'}")
    return code if isinstance(code, int) else 0


def _set_encodings() -> None:
    """Write UTF-8 to files and pipes, whatever the locale; show characters that a terminal lacks as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            is_free = not stream.isatty()
            stream.reconfigure(encoding="utf-8" if is_free else stream.encoding, errors="backslashreplace")


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__


def _fail(message: str, code: int = 1) -> int:
    sys.stdout.flush()
    lines = (line.strip().removesuffix(":") for line in in_commands(message).splitlines() if line.strip(" ^"))
    click.echo(f"error: {on_one_line(': '.join(lines))}", err=True)
    return code


@contextmanager
def _short_warnings() -> Iterator[None]:
    """Print warnings as one line on stderr."""

    def print_warning(message: Warning | str, *_: object) -> None:
        click.echo(f"warning: {on_one_line(in_commands(str(message)))}", err=True)

    with warnings.catch_warnings():
        warnings.showwarning = print_warning  # type: ignore[assignment]
        yield
