"""An application's captured workload, as a model and as a fio job."""
