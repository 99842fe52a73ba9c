"""Tables served to engines that are not Python: Arrow Flight, Flight SQL and HTTP over the same scans."""
