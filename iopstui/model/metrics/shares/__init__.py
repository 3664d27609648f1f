"""NFS and SMB mounts: rates, latencies, waits."""
