"""Tables, CSV and Excel: problems as stops, vehicles, settings and matrices, and plans as one row a stop."""
