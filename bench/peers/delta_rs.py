"""delta-rs (`deltalake`): the table is loaded, then lists its files; a predicate prunes by statistics."""

from deltalake import DeltaTable
from measure import LOW_PREDICATE, Measurement, arguments

table, query = arguments()
run = Measurement("delta-rs", query)
run.start()
uris = DeltaTable(table).file_uris(file_pruning_predicate=LOW_PREDICATE if query == "predicate" else None)
run.saw(len(uris))
run.finish(files=len(uris))
