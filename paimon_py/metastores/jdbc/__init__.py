"""Names of databases and tables in a SQL database, in the tables that Java's `JdbcCatalog` keeps; and its locks."""
