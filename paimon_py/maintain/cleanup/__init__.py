"""The garbage collector: what may be deleted, what holds it, and one module for each kind of deletion."""
