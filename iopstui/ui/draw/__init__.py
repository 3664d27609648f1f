"""Drawing: charts, rows, styles. Knows nothing of sessions."""
