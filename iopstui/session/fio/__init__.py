"""One run of fio: start, end, files, final document, write budget."""
