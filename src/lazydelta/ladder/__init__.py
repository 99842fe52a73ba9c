"""The ladder on somebody's own table: what each step of the design costs there; nothing is written."""
