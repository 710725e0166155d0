"""File indexes: a summary of the values in a data file, so that readers can skip the file or some of its rows.

One module per index type: a writer builds bytes from the columns of a file (Arrow arrays); a reader answers questions
about one column with the rows that may match. `container` packs the indexes of a file together, and `answer` evaluates
a predicate with them. No module opens files or loops over rows.

Source: format.md §11; Java package `org.apache.paimon.fileindex`.
"""
