"""Database and table names in a SQL database, in the tables of Java's `JdbcCatalog`; and its locks."""
