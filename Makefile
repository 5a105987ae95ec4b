# Every target sets up what it needs; `make help` lists them.

BIN := .venv/bin
READY := .venv/.ready
# Where it is set, each of the processes of a test run compiles the tests anew.
unexport PYTHONDONTWRITEBYTECODE
# Without what only tests, lint and benchmarks need.
DEMO := .venv/.ready-demo

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(DEMO) ## mount a sharded, compressed array and read it with ordinary tools
	@.ci/fuse.sh
	@PATH="$(CURDIR)/$(BIN):$$PATH" docs/demo.sh

# Tests wait for mounts and disks: four at once are faster on two processors, too. One process runs
# each file, those that take longest first; ARGS=-n0 for a debugger.
PYTEST := $(BIN)/pytest -n 4 --dist loadfile --no-loadscope-reorder

.PHONY: test
test: export PACKAGES = attr busybox fio gfortran mandoc perl rsync sox systemd xxd
test: $(READY) ## run the tests; ARGS="-k chunk -x" goes to pytest
	@.ci/packages.sh $(PACKAGES)
	@.ci/fuse.sh
	@.ci/timed.sh $(PYTEST) $(ARGS)

.PHONY: test-versions
test-versions: $(READY) ## run quick tests with each Python, and with the newest packages; VERSIONS="3.12 newest", TESTS=tests/unit
	@.ci/fuse.sh
	TESTS="$(TESTS)" .ci/versions.sh $(VERSIONS)

.PHONY: test-tools
test-tools: export PACKAGES = attr busybox cdo fio gdal-bin gfortran gnudatalanguage grads hdf5-tools \
	default-jdk-headless default-jre imagej imagemagick libvips-tools libxdmf3 ffmpeg mrtrix3 netcdf-bin \
	nifti-bin octave perl r-base-core r-cran-ncdf4 rsync sox teem-apps xvfb xxd
test-tools: $(READY) ## install the programs that docs/tools.md names, and libraries for Node; test with them
	@.ci/packages.sh $(PACKAGES)
	@.ci/fuse.sh
	$(BIN)/pip install --quiet --require-hashes -r .ci/tools.lock
	@.ci/npm.sh azurite 3.35.0
	@.ci/npm.sh zarrita 0.7.5
	@.ci/npm.sh jsfive 0.4.2
	@.ci/npm.sh h5wasm 0.10.3
	@.ci/bioformats.sh
	$(PYTEST) tests/store/test_every_store.py tests/store/test_every_writable_store.py -k azure
	$(PYTEST) tests/tools tests/docs/test_commands.py -k "tools or test_page" $(ARGS)

.PHONY: pictures
pictures: $(READY) ## make the pictures of docs/ anew; make test-tools installs what it takes
	ZARRFS_PICTURES=$(CURDIR)/docs $(PYTEST) tests/tools/test_imagej.py tests/tools/test_pictures.py

.PHONY: soak
soak: TIMES = 20
soak: $(READY) ## run the tests with random input, with new and more of it; TIMES=100 for longer
	@.ci/fuse.sh
	ZARRFS_SOAK=$(TIMES) $(PYTEST) -m "hypothesis or soak" \
		-o faulthandler_timeout=$$((130 * $(TIMES))) $(ARGS)

.PHONY: sweep
sweep: $(READY) ## kill or fail mounts at each of their operations
	@.ci/fuse.sh
	ZARRFS_EXHAUSTIVE=1 $(PYTEST) tests/faults/killed/test_crash_sweep.py tests/faults/killed/test_mounts_killed.py \
		-s -o faulthandler_timeout=2600 $(ARGS)

.PHONY: scale
scale: $(READY) ## work on 10 000 arrays with 64 processes: does anything grow? ARGS="--seconds 3600"
	@.ci/fuse.sh
	$(BIN)/python -m tests.scale $(ARGS)

.PHONY: mutants
mutants: N = 20
mutants: SEED = 1
mutants: $(READY) ## put N small faults into the modules that data depend on; do tests notice?
	$(BIN)/python -m tests.mutants --count $(N) --seed $(SEED) $(ARGS)

.PHONY: fuzz
fuzz: TIME = 600
fuzz: $(READY) ## read hostile data without end; TIME=3600 for an hour, ARGS="--target streams"
	@.ci/fuse.sh
	$(BIN)/python -m tests.fuzz --time $(TIME) $(ARGS)

.PHONY: wheel
wheel: $(READY) ## build the packages, install them in a fresh environment, run the demo there
	@.ci/fuse.sh
	.ci/wheel.sh

.PHONY: package
package: export PACKAGES = debootstrap
package: $(READY) ## build a Debian package, and install and use it in a new system
	@.ci/packages.sh $(PACKAGES)
	.ci/package.sh

.PHONY: bench
bench: $(READY) ## measure speed beside TensorStore and others, and write docs/performance.*
	@.ci/fuse.sh
	$(BIN)/python -m benchmarks --write $(ARGS)

.PHONY: bench-remote
bench-remote: $(READY) ## measure arrays a round trip away beside TensorStore and zarr-python
	$(BIN)/python -m benchmarks.remote $(ARGS)

.PHONY: bench-together
bench-together: $(READY) ## measure how long programs of one mount wait for one another
	@.ci/fuse.sh
	$(BIN)/python -m benchmarks.together

.PHONY: bench-quick
bench-quick: $(READY) ## the same, smaller and in two minutes, and write nothing
	@.ci/fuse.sh
	$(BIN)/python -m benchmarks --scale quick $(ARGS)

.PHONY: bench-copy
bench-copy: $(READY) ## measure copies beside cp, TensorStore and, with ARGS="--peers PYTHON", rechunker and Dask
	$(BIN)/python -m benchmarks.copy $(ARGS)

.PHONY: bench-shapes
bench-shapes: SEEDS = 0:40
bench-shapes: $(READY) ## measure arrays drawn at random beside TensorStore; SEEDS=3,7 for some, ARGS="--size 64M"
	@.ci/fuse.sh
	$(BIN)/python -m benchmarks.shapes --seeds $(SEEDS) $(ARGS)

.PHONY: lint
lint: $(READY) ## check style, types, layers and prose
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python .ci/prose.py

.PHONY: format
format: $(READY) ## mend what ruff can mend
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

.PHONY: docs
docs: $(READY) ## write the pages of docs/ that are made from the code
	$(BIN)/python docs/reference.py
	$(BIN)/python docs/formats.py

.PHONY: site
site: $(READY) ## build the documentation below build/site
	$(BIN)/mkdocs build # with --quiet, warnings would not count

.PHONY: lock
lock: ## lock the newest versions of all dependencies
	.ci/lock.sh --upgrade

.PHONY: clean
clean: ## remove caches and build output
	rm -rf dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find zarrfs tests docs -name __pycache__ -prune -exec rm -rf {} +

SETUP := pyproject.toml .ci/setup.sh .ci/packages.sh .ci/build.lock

$(READY): $(SETUP) .ci/requirements.lock .ci/zarr2.lock
	@.ci/setup.sh

$(DEMO): $(SETUP) .ci/demo.lock
	@.ci/setup.sh demo
