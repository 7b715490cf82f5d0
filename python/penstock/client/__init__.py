"""What a connected program works with: connections, queues, status, dead letters."""
