"""The stats sidecar on disk: its format, how parts are written and read, what binds it to a log."""
