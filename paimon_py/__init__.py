"""Apache Paimon tables in pure Python: the public names, nothing else."""
