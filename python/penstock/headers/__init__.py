"""MQ headers that precede the data of a message."""
