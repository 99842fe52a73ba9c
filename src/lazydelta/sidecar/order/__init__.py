"""Rows in order: sorting, merging, a sidecar traversed by its order column."""
