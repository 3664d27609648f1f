"""The network below shares and remote disks: TCP connections."""
