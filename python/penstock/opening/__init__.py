"""Opening queues: name resolution, option rules and the handle. Private to the package."""
