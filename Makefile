# make run: everything from a fresh clone to the live screen. make test: all checks.
.POSIX:
.PHONY: help run dist dist-check test bench golden truth recordings scoreboard simulate virtual faults faults-long monitoring engines fuzz mutants lint format lock clean report-look docs site pictures release web

help:
	@echo 'make run     install what is missing, then watch a safe job on a scratch file here'
	@echo 'make test    install what is missing, then run all checks and tests'
	@echo 'make dist    sdist, wheel, the program in a single file, deb and rpm, in dist/'
	@echo 'make dist-check  check that builds are reproducible and the packages work (2 minutes)'
	@echo 'make bench   measure the cost of iopstui itself (about 25 minutes)'
	@echo 'make golden  compare 300 outputs with those kept in tests/golden (2 minutes)'
	@echo 'make truth   80 short jobs: check each second against per-I/O logs (3 minutes)'
	@echo 'make recordings  tests of the figures with all 59 recordings of fio, not with twelve (3 minutes)'
	@echo 'make scoreboard  check the findings in known situations created on this machine (root)'
	@echo 'make simulate  count how often comparisons, gates, limits and siblings are wrong (20 minutes)'
	@echo 'make virtual  fit and limit on disks with a known answer, in guests in virtual time (a night; root)'
	@echo 'make faults  real fio on failing devices and hostile jobs (root; creates its own devices)'
	@echo 'make faults-long  the long fault tests: many cycles, all of fio'"'"'s examples'
	@echo 'make monitoring  feed the exports to real Prometheus, node_exporter and InfluxDB'
	@echo 'make engines  run fleets with real Slurm and Kubernetes, merge what other launchers bring (root)'
	@echo 'make fuzz    fuzz the parsers for a minute (needs atheris)'
	@echo 'make mutants  mutation test: check that tests notice random changes (needs mutmut)'
	@echo 'make lint    run the checks without the tests'
	@echo 'make format  format the code'
	@echo 'make docs    regenerate docs/reference and docs/man from the program'
	@echo 'make site    build the documentation site in build/site and check its links'
	@echo 'make pictures  render the animations in docs/ from recordings'
	@echo 'make web     test iopstui serve in a real browser, pictures in build/ (needs chromium)'
	@echo 'make report-look  take screenshots of a report with a real browser, in build/'
	@echo 'make lock    update the locked Python packages (requirements*.txt)'
	@echo 'make release VERSION=1.2.0  run tests, set the version, commit and tag; pushes nothing'
	@echo 'make clean   remove build output and .venv (not packages installed by apt)'

run:
	@.ci/setup run
	@.venv/bin/iopstui live . --job mixed-4k

test:
	@.ci/setup test
	@.ci/tests

# the output depends only on the source and SOURCE_DATE_EPOCH (default: the time of the commit)
dist:
	@.ci/setup run
	@.ci/dist

# PYTHON2=/path/to/another/python (with pip and hatchling) makes the second build
dist-check:
	@.ci/setup run
	@.ci/dist-check

bench:
	@.ci/setup run
	@.venv/bin/python tests/bench

golden:
	@.ci/setup run
	@.venv/bin/python tests/golden

truth:
	@.ci/setup test
	@.venv/bin/python tests/truth

recordings:
	@.ci/setup test
	IOPSTUI_ALL_RECORDINGS=1 .venv/bin/python -m pytest -q -p no:cacheprovider -n 2 tests/fio tests/model tests/output tests/recording tests/report

# IOPSTUI_LAB="COMMAND" and similar variables run the cases that need virtual machines (tests/scoreboard)
scoreboard:
	@.ci/setup test
	.venv/bin/python tests/scoreboard

simulate:
	@.ci/setup test
	.venv/bin/python tests/simulate

# VIRTUAL="--kernel FILE --modules DIR" names a kernel other than the one that runs
virtual:
	@.ci/setup test
	.venv/bin/python tests/virtual $(VIRTUAL)

# IOPSTUI_LAB="COMMAND" runs tests with failing hardware in a virtual machine (tests/faults/test_lab.py)
faults:
	@.ci/setup test
	IOPSTUI_FAULTS=1 .venv/bin/python -m pytest tests/faults -m 'not long'

faults-long:
	@.ci/setup test
	IOPSTUI_FAULTS=1 .venv/bin/python -m pytest tests/faults -m long

# unpacks the distribution's packages (apt) without installing them; IOPSTUI_MONITORING uses others
monitoring:
	@.ci/setup test
	@.ci/monitoring .monitoring
	IOPSTUI_MONITORING=.monitoring/usr/bin .venv/bin/python -m pytest tests/monitoring

# needs apt install chromium; make test has the tests that need no browser
web:
	@.ci/setup test
	.venv/bin/python -m pytest -q -p no:cacheprovider tests/web/check_browser.py

# needs apt install slurm-wlm munge openmpi-bin clustershell pdsh etcd-server kubernetes-client, and Go;
# starts a Slurm and a Kubernetes of its own (which it builds first, once: tests/engines/kubernetes/build)
engines:
	@.ci/setup test
	IOPSTUI_ENGINES=1 .venv/bin/python -m pytest tests/engines

# atheris is not in the lock: .venv/bin/pip install atheris
fuzz:
	@.ci/setup test
	.venv/bin/python tests/fuzz/fuzz_parsers.py -max_total_time=60

# not in the lock: .venv/bin/pip install mutmut==3.8.1 pytest-cov
# SAMPLE=N: number of changes; SEED=N: repeats the changes of an earlier run
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
	@.venv/bin/vulture --min-confidence 60 | { ! grep -E 'unused (function|method|property|class|import)|unreachable'; }

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
