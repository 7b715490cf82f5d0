"""Messages as Arrow tables, and tables as messages."""
