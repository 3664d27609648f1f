"""Code shared by single-machine commands: do one run, watch or experiment from start to end."""
