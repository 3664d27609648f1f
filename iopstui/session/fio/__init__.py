"""One run of fio: starting it, ending it, its files, its last word, its write budget."""
