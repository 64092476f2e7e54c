# `make` alone lists the targets. Everything is installed into .venv and nowhere else, but for qemu-user and chromium by root.
PYTHON ?= python3.11
PY := .venv/bin/python
# What a clone is tested with is what it was written with: a library that changes its ways overnight breaks no old commit.
INSTALL := $(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt
.DEFAULT_GOAL := help

.PHONY: help install test test-fast lint format demo bench proof breadth recipes catalog families newest docs screenshots clean

help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

install: .venv/.installed ## make .venv and install modelwright with what most tests need

.venv/.installed: pyproject.toml Makefile constraints.txt
	$(PYTHON) -m venv .venv
	$(INSTALL) -e '.[dev,qnn,openvino,farm]'
	touch .venv/.installed

# torch is pinned: on Linux a range would pull gigabytes of CUDA packages.
.venv/.installed-hf: .venv/.installed
	$(INSTALL) 'torch==2.13.0' -e '.[dev,qnn,openvino,farm,hf,eval]'
	touch .venv/.installed-hf

# One test asks what a CPU without VNNI computes. Where qemu-user is missing and cannot be installed, it is skipped.
.PHONY: qemu
qemu:
	@command -v qemu-x86_64 >/dev/null || test "$$(id -u)" != 0 || ! command -v apt-get >/dev/null \
	  || apt-get install -qq -y --no-install-recommends qemu-user >/dev/null \
	  || { apt-get update -qq && apt-get install -qq -y --no-install-recommends qemu-user >/dev/null; } \
	  || echo "qemu-user cannot be installed: the test of CPUs without VNNI will be skipped"

# Pages are looked at in a real browser. Where there is none and none can be installed, those tests are skipped.
.PHONY: chromium
chromium:
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || test "$$(id -u)" != 0 \
	  || ! command -v apt-get >/dev/null || apt-get install -qq -y --no-install-recommends chromium >/dev/null \
	  || { apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium >/dev/null; } \
	  || echo "chromium cannot be installed: the tests of pages in a browser will be skipped"

# Feeds are tried against a real OCI registry. It is unpacked, not installed: nothing is started on its own.
.PHONY: registry
registry: .venv/.installed
	@command -v docker-registry >/dev/null || test -x .venv/registry/usr/bin/docker-registry || ! command -v apt-get >/dev/null \
	  || { mkdir -p .venv/registry && cd .venv/registry \
	       && { apt-get download -qq docker-registry 2>/dev/null || { apt-get update -qq && apt-get download -qq docker-registry 2>/dev/null; }; } \
	       && dpkg -x docker-registry_*.deb . && rm docker-registry_*.deb; } \
	  || echo "docker-registry cannot be had: the tests against a real registry will be skipped"

# The C++ selector of a package is compiled against Debian's headers. Unpacked, not installed; from sid, where they are newest.
APT := .venv/ort-headers/apt
APT_SID := -o "Dir::Etc::sourcelist=$(CURDIR)/$(APT)/sources.list" -o Dir::Etc::sourceparts=/dev/null \
  -o "Dir::State::lists=$(CURDIR)/$(APT)/lists" -o "Dir::Cache=$(CURDIR)/$(APT)/cache"
.PHONY: headers
headers: .venv/.installed
	@test -f .venv/ort-headers/usr/include/onnxruntime/onnxruntime_cxx_api.h || ! command -v apt-get >/dev/null \
	  || { mkdir -p $(APT)/lists/partial $(APT)/cache/archives/partial \
	       && echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $$(apt-get indextargets --format '$$(REPO_URI)' | head -n 1) sid main" > $(APT)/sources.list \
	       && apt-get $(APT_SID) update -qq && cd .venv/ort-headers && apt-get $(APT_SID) download -qq libonnxruntime-dev 2>/dev/null \
	       && dpkg -x libonnxruntime-dev_*.deb . && rm -rf libonnxruntime-dev_*.deb apt; } \
	  || echo "libonnxruntime-dev cannot be had: the test of the C++ selector will be skipped"

# Many wait for a child or a clock: three at a time keep two cores at work. The fast ones come first.
test: .venv/.installed-hf qemu chromium registry headers ## all tests
	$(PY) -m pytest -n 3 -rfEs

test-fast: install ## unit tests only, under a minute
	$(PY) -m pytest tests/unit -n 2

lint: install ## ruff, mypy for three systems, import contracts, generated docs, the catalogue
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	printf '%s\n' linux win32 darwin | xargs -P 2 -I {} $(PY) -m mypy --platform {} --cache-dir .mypy_cache/{}
	$(PY) -c "from importlinter.cli import lint_imports_command; lint_imports_command()"
	$(PY) docs/generate_commands.py --check
	.venv/bin/wright catalog lint
	.venv/bin/wright catalog index --check

format: install ## let ruff rewrite the code
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

bench: .venv/.installed-hf ## the benchmarks; results go to bench/results/
	$(PY) -m bench

proof: .venv/.installed-hf ## the long proofs (minutes to hours); results go to bench/results/
	$(PY) -m pytest -m proof -n 2
	$(PY) bench/judge_proof.py
	$(PY) -m bench aa_real planted equality two_runtimes real_repairs repair_optimum passed peers effort old_cpu kills fix_kills mutations node_tests tune_sim tune_kills tune_real

breadth: .venv/.installed-hf ## every model type of transformers, shrunk: which become graphs (hours; goes on where it was ended)
	$(PY) -m bench breadth

recipes: .venv/.installed-hf ## lint the catalogue, build every tiny entry, review one contribution (minutes)
	$(PY) -m bench recipes

catalog: .venv/.installed-hf ## build the catalogue's trained models, each judged by its metric (fetches them once)
	$(PY) -m bench catalog

families: .venv/.installed-hf ## export every supported model family (tiny configs) and print the table
	$(PY) -m bench.families

screenshots: install chromium ## pictures of every page, wide and narrow, light and dark, in screenshots/
	mkdir -p screenshots
	WRIGHT_SCREENSHOTS=screenshots $(PY) -m pytest tests/e2e/test_pages.py

newest: ## take the newest of every library into constraints.txt; then run the tests
	rm -rf .venv && : > constraints.txt && $(MAKE) .venv/.installed-hf
	$(PY) -m pip freeze --exclude-editable | sed 's/+cpu$$//' > constraints.txt && touch .venv/.installed .venv/.installed-hf

docs: install ## write the index of the catalogue, docs/commands.md and docs/support.md again
	.venv/bin/wright catalog index
	$(PY) docs/generate_commands.py

demo: .venv/.installed-hf ## the main job, on a small model
	$(PY) demo/run.py

clean: ## remove .venv and caches
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
