"""File indexes: what a data file holds, as bytes beside it, so that readers can skip the file or rows of it.

One module per index type: a writer takes the columns of a file as Arrow arrays and makes bytes; a reader answers
questions about one column with the rows that may match. `container` packs the indexes of a file together, `answer`
asks them what a predicate needs. Nothing here opens files, and nothing loops over rows.

Source: format.md §11; Java package `org.apache.paimon.fileindex`.
"""
