"""What was captured of an application's workload, as a model and as a fio job."""
