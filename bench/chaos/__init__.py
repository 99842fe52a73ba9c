"""Writers, upkeep and kills on one side, readers on the other; every answer is checked. See `__main__.py`."""
