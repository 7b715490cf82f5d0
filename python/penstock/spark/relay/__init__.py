"""Rows that go through the driver, for executors on other hosts where there is no server."""
