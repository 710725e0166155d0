"""The garbage collector: what may be deleted, what protects it, and one module for each kind of deletion."""
