"""The Parquet format: footers, pages, statistics and variants around pyarrow's reader and writer."""
