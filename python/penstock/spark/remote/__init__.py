"""The data source beyond the queue manager's host: through the server of ``penstock serve``."""
