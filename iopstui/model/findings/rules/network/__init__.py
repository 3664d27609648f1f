"""Rules on network mounts: NFS, SMB, and the TCP connections to their servers."""
