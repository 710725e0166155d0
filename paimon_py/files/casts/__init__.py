"""Values of one type as values of another, as Java Paimon casts them. Never reads a file."""
