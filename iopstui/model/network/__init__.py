"""TCP connections below shares and remote disks."""
