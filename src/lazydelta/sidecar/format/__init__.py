"""The files of a sidecar: their names, contents, checks, reading and writing of one at a time."""
