"""Casts of values from one type to another, as in Java Paimon. Does not read files."""
