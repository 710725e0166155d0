"""Formats that are read with the packages of their own projects."""
