"""The verb that loads files: rows of CSV, Parquet or JSON files, as one commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Literal

from paimon_py.arguments import as_mapping
from paimon_py.commit.result import CommitResult
from paimon_py.progress import Progress
from paimon_py.spec.bad_row import BadRow
from paimon_py.spec.commit_label import CommitLabel
from paimon_py.table.verbs import TableVerbs, at_table_door, commits


@at_table_door
class TableLoading(TableVerbs):
    """What `Table` offers to load files."""

    @commits
    def load_files(  # noqa: PLR0913
        self,
        files: str | PurePath | Sequence[str | PurePath],
        *,
        format: str | None = None,
        delimiter: str | None = None,
        nulls: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
        overwrite: Mapping[str, object] | Literal["dynamic"] | None = None,
        user: str | None = None,
        identifier: int | None = None,
        on_bad_row: Callable[[BadRow], object] | None = None,
        progress: Progress | None = None,
    ) -> CommitResult:
        """Write the rows of files, as one commit. Columns match by name; JSON is one object on each line.

        A file with a column that the table does not have is refused, so that a column that is spelt otherwise is not
        NULL in all rows, and a CSV file with another delimiter is not one column. Columns that a file lacks become
        NULL or their default, as in `write_arrow`.

        Args:
            files: a path, URL, directory or pattern (`"in/*.csv"`, `**` for any depth), or several; each file once.
                Names that end in `.gz` are decompressed.
            format: `"csv"`, `"parquet"` or `"json"`; left out, the names of the files say.
            delimiter: what stands between the values of CSV files; left out, a comma, in `.tsv` files a tab.
            nulls: texts in CSV files that are NULL, beside nothing.
            options: credentials and settings of the store that the files lie in.
            overwrite: as in `write_arrow`; files without rows are refused then.
            on_bad_row: called with each row of a CSV file that does not fit the table, in the order of the file; these
                rows are left out and the others written. Left out, such a file is an error and nothing is written.
            user, identifier: make the call repeatable: a number that the user has committed reads no file.
            progress: called with bytes that were read, their sum, and the name of the file; then with rows.

        Cost: one pass over the files, in the memory of one writer.
        Raises:
            UsageError: no file, one that is not of its format, or a name that does not say what the file is.
            SchemaError: a file does not fit the table: its path, and every column that does not fit.
            StorageError: a file is not there.
            PaimonError: as `write_arrow`. Nothing was written in any case.
        """
        from paimon_py.table.writing import load
        from paimon_py.write.loaded_files import LoadFormat

        how = LoadFormat.of(format, delimiter, nulls, on_bad_row)
        label, settings = CommitLabel(user, identifier), as_mapping("options", options)
        return load(self._open_table, files, how, settings, overwrite=overwrite, label=label, progress=progress)
