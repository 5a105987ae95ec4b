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
test: export PACKAGES = attr busybox fio gfortran perl rsync sox xxd
test: $(READY) ## run the tests; ARGS="-k chunk -x" goes to pytest
	@.ci/packages.sh $(PACKAGES)
	@.ci/fuse.sh
	$(BIN)/pytest $(ARGS)

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
docs: $(READY) ## write docs/formats.md: what zarrfs reads, and who else does
	$(BIN)/python docs/formats.py

.PHONY: lock
lock: ## lock the newest versions of all dependencies
	.ci/lock.sh --upgrade

.PHONY: clean
clean: ## remove caches and build output
	rm -rf dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find zarrfs tests docs -name __pycache__ -prune -exec rm -rf {} +

$(READY): pyproject.toml .ci/setup.sh .ci/packages.sh .ci/build.lock .ci/requirements.lock
	@.ci/setup.sh
