"""Tables of up to a billion files that nobody holds: a store that makes up what is asked of it."""
