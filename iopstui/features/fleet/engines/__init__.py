"""Programs that start processes on hosts: Slurm, Kubernetes."""
