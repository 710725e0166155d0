"""Predicates: their values, their SQL text, binding them to columns, evaluating them, and pruning with them.

A predicate is written with `col(...)` or parsed from text, bound once to a schema, and from then on only the bound
form is used: it has no NOT, no unknown column, and only literals that its column can hold. Out of scope: reading
files, evolving schemas, deciding which files to read.
"""
