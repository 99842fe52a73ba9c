"""Tables read in Spark: the Python data source `lazydelta`, and the DataFrame made of it.

PySpark is loaded with the modules that define its classes: `source`, `batch_reader`, `stream_reader`.
"""
