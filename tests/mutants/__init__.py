"""Mutation testing (`make mutants`): small faults are put into the source, and the tests have to notice."""
