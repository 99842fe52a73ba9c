"""Rows out of a sidecar: which row groups, which columns, in bounded memory."""
