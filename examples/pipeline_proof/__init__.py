"""Proof of the Spark pipelines: runs them on real log lines, kills them, compares with grep."""
