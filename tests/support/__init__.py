"""What tests stand on: builders of real tables, the eager twin, random histories, real servers, Spark."""
