"""Everything about the program fio: its sandbox, guard process, output stream and jobs."""
