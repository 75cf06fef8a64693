"""IO managers that store tables: parquet, Delta without a JVM, Spark; each hashes what it stores."""
