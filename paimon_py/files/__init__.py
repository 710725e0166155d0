"""One data file as format plus schema plus statistics.

Reading opens a file of any schema version and yields batches of the schema asked for (`reader`, `evolve`, `cast`);
writing rolls batches into files of a target size and yields `DataFile` values with exact key ranges and statistics
(`writer`, `stats`, `naming`). Which files to read or to write, and in which order, is decided above.
"""
