"""Do intervals cover, and do tests keep their level: simulated over shapes of data."""
