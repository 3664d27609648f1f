"""Check iopstui's own figures on this machine: collect evidence, then judge it."""
