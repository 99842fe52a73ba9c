"""Arrow Flight: one port, thin over the scans that all protocols share."""
