"""Programs that place runs on hosts: Slurm, Kubernetes."""
