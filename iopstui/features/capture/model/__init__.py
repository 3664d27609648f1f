"""The workload of an application: what was captured of it, as a model and as a fio job."""
