"""Flight SQL: read-only SQL over the served tables, for every driver that speaks it; see `room.py`."""
