# make run: everything from a fresh clone to the live screen. make test: all checks.
.POSIX:
.PHONY: help run dist dist-check test bench truth scoreboard simulate faults faults-long monitoring fuzz mutants lint format lock clean report-look docs site pictures release

help:
	@echo 'make run     set up what is missing, then watch a safe job on a scratch file here'
	@echo 'make test    set up what is missing, then run all checks and tests'
	@echo 'make dist    sdist, wheel, the program in a single file, deb and rpm, in dist/'
	@echo 'make dist-check  is that the same bytes elsewhere, and do the packages work? (2 minutes)'
	@echo 'make bench   what iopstui itself costs, as a table (some 25 minutes)'
	@echo 'make truth   100 short jobs: every figure against fio and its per-I/O logs (6 minutes)'
	@echo 'make scoreboard  are the findings right? Known situations, made for real (root)'
	@echo 'make simulate  how often does a comparison claim what is not so? (10 minutes)'
	@echo 'make faults  real fio on failing devices and hostile jobs (root; devices of its own)'
	@echo 'make faults-long  the same, what takes long: many cycles, all of fio'"'"'s examples'
	@echo 'make monitoring  the real Prometheus, node_exporter and InfluxDB take what is exported'
	@echo 'make fuzz    feed the parsers with garbage for a minute (needs atheris)'
	@echo 'make mutants  change the program at random: do the tests notice? (needs mutmut)'
	@echo 'make lint    the checks without the tests'
	@echo 'make format  put the code into the one style'
	@echo 'make docs    write docs/reference and docs/man anew from the program'
	@echo 'make site    the documents as a web site, all links checked, in build/site'
	@echo 'make pictures  the moving pictures in docs/, from recordings'
	@echo 'make report-look  pictures of a report, made by a real browser, in build/'
	@echo 'make lock    choose the Python packages anew (requirements*.txt)'
	@echo 'make release VERSION=1.2.0  tests, version, changelog, commit and tag; sends nothing'
	@echo 'make clean   remove what was built (not what apt installed)'

run:
	@.ci/setup run
	@.venv/bin/iopstui live . --job mixed-4k

test:
	@.ci/setup test
	@.ci/tests

# SOURCE_DATE_EPOCH (default: the commit's time) is all that the bytes depend on besides the source
dist:
	@.ci/setup run
	@.ci/dist

# PYTHON2=/path/to/another/python with pip and hatchling: the second build is that one's
dist-check:
	@.ci/setup run
	@.ci/dist-check

bench:
	@.ci/setup run
	@.venv/bin/python tests/bench

truth:
	@.ci/setup test
	@.venv/bin/python tests/truth

# IOPSTUI_LAB="COMMAND" and others like it run what needs virtual machines (tests/scoreboard)
scoreboard:
	@.ci/setup test
	.venv/bin/python tests/scoreboard

simulate:
	@.ci/setup test
	.venv/bin/python tests/simulate

# IOPSTUI_LAB="COMMAND" runs what needs failing hardware in a virtual machine (tests/faults/test_lab.py)
faults:
	@.ci/setup test
	IOPSTUI_FAULTS=1 .venv/bin/python -m pytest tests/faults -m 'not long'

faults-long:
	@.ci/setup test
	IOPSTUI_FAULTS=1 .venv/bin/python -m pytest tests/faults -m long

# from the distribution, unpacked here and not installed; apt (IOPSTUI_MONITORING names others)
monitoring:
	@.ci/setup test
	@.ci/monitoring .monitoring
	IOPSTUI_MONITORING=.monitoring/usr/bin .venv/bin/python -m pytest tests/monitoring

# needs atheris, which is not in the lock: .venv/bin/pip install atheris
fuzz:
	@.ci/setup test
	.venv/bin/python tests/fuzz/fuzz_parsers.py -max_total_time=60

# needs what is not in the lock: .venv/bin/pip install mutmut==3.8.1 pytest-cov
# SAMPLE=N: how many changes; SEED=N: which ones, e.g. those of an earlier run
SAMPLE = 200
SEED =
mutants:
	@.ci/setup test
	.venv/bin/python tests/mutants --sample $(SAMPLE) $(SEED:%=--seed %)

lint:
	@.ci/setup test
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports --no-cache --no-logo

format:
	@.ci/setup test
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

lock:
	@.ci/lock

docs:
	@.ci/setup test
	@.venv/bin/python tests/docs

site:
	@.ci/setup run
	@.ci/site

pictures:
	@.ci/setup test
	@.venv/bin/python tests/pictures

VERSION =
release:
	@.ci/setup test
	@.venv/bin/python .ci/release '$(VERSION)'

report-look:
	@.ci/setup run
	@.ci/report-look

clean:
	rm -rf .venv dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis \
		.import_linter_cache snapshot_report.html
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
