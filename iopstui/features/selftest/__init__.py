"""Check iopstui's own figures on this machine: evidence is collected, then judged."""
