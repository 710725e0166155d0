"""Load method of `Table`: loads rows of CSV, Parquet or JSON files in one commit."""

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
    """Method of `Table` that loads files."""

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
        """Load the rows of files in one commit. Columns match by name; JSON is one object per line.

        A file with a column that the table does not have is rejected, so that a misspelt column does not become NULL in
        all rows, and a CSV file with another delimiter is not read as a single column. Columns missing from a file
        become NULL or their default, as in `write_arrow`. In JSON, MAPs are objects and VARIANTs are any value; in CSV,
        values of nested types are JSON text.

        Args:
            files: a path, URL, directory or pattern (`"in/*.csv"`, `**` for any depth), or several; each file is read
                once. Files whose names end in `.gz` are decompressed.
            format: `"csv"`, `"parquet"` or `"json"`; by default the file names determine it.
            delimiter: the separator of values in CSV files; by default a comma, or a tab in `.tsv` files.
            nulls: strings in CSV files that mean NULL, in addition to an empty value.
            options: credentials and settings of the store that contains the files.
            overwrite: as in `write_arrow`; files without rows are then rejected.
            on_bad_row: called with each row of a CSV file that does not fit the table, in file order; these rows are
                skipped and the others written. By default such a file is an error and nothing is written.
            user, identifier: make the call repeatable: if the user has already committed this number, no file is read.
            progress: called with the bytes read, their sum, and the name of the file; then with rows.

        Cost: one pass over the files, in the memory of one writer.
        Raises:
            UsageError: no file, a file that is not of its format, or a file name that does not determine the format.
            SchemaError: a file does not fit the table: its path, and every column that does not fit.
            StorageError: a file does not exist.
            PaimonError: as `write_arrow`. Nothing is written in any of these cases.
        """
        from paimon_py.table.writing import load
        from paimon_py.write.loaded_files import LoadFormat

        how = LoadFormat.of(format, delimiter, nulls, on_bad_row)
        label, settings = CommitLabel(user, identifier), as_mapping("options", options)
        return load(self._open_table, files, how, settings, overwrite=overwrite, label=label, progress=progress)
