"""Sidecars without Spark: build, verify, show, clean."""
