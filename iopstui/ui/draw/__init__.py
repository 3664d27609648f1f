"""Drawing: charts, rows, styles. Nothing here depends on sessions."""
