"""fio's own figures and job files, as values: intervals between two documents, options, reports."""
