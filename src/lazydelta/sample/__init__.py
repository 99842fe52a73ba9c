"""A small table of telemetry to try things on, made without Spark."""
