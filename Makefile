# Every target sets up what it needs; `make help` lists them.

BIN := .venv/bin
READY := .venv/.ready

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(READY) ## mount a sharded, compressed array and read it with ordinary tools
	@.ci/fuse.sh
	@PATH="$(CURDIR)/$(BIN):$$PATH" docs/demo.sh

.PHONY: test
test: export PACKAGES = attr busybox fio gfortran mandoc perl rsync sox systemd xxd
test: $(READY) ## run the tests; ARGS="-k chunk -x" goes to pytest
	@.ci/packages.sh $(PACKAGES)
	@.ci/fuse.sh
	$(BIN)/pytest $(ARGS)

.PHONY: wheel
wheel: $(READY) ## build the packages, install them in a fresh environment, run the demo there
	@.ci/fuse.sh
	.ci/wheel.sh

.PHONY: lint
lint: $(READY) ## check style, types and the layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

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
	$(BIN)/mkdocs --quiet build

.PHONY: lock
lock: ## lock the newest versions of all dependencies
	.ci/lock.sh --upgrade

.PHONY: clean
clean: ## remove caches and build output
	rm -rf dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find zarrfs tests docs -name __pycache__ -prune -exec rm -rf {} +

$(READY): pyproject.toml .ci/setup.sh .ci/packages.sh .ci/build.lock .ci/requirements.lock
	@.ci/setup.sh
