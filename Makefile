# SPDX-License-Identifier: MIT
# The one entrance; meson and ninja do the work behind it. `make help` lists what there is.

BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 30
BENCH_ROUNDS ?= 300
SOAK_CALLS ?= 100000
SOAK_TOOL_CALLS ?= 10000
SOAK_PYTHON_CALLS ?= 10000
BENCH_CALLS ?= 3000

# Debian's own tools, whatever else the PATH may hold: they find Debian's Python modules.
PYTHON ?= $(firstword $(wildcard /usr/bin/python3) python3)
MESON ?= $(firstword $(wildcard /usr/bin/meson) meson)
NINJA ?= ninja

# Debian's directory for libraries; meson finds it by itself only where dpkg-dev is installed.
MULTIARCH := $(shell $(CC) -print-multiarch 2>/dev/null)
SETUP := --prefix=$(PREFIX) $(if $(MULTIARCH),--libdir=lib/$(MULTIARCH))

MAKEFLAGS += --no-print-directory

# Run a command and show what it says only if it fails.
quietly = { said=$$($(1) 2>&1) || { echo "$$said" >&2; exit 1; }; }
comma := ,

.PHONY: all help deps demo test unit sanitize lint format bench fuzz soak wheel install clean

all: $(BUILD)/build.ninja ## build everything into build/ (the default)
	@$(NINJA) -C $(BUILD)

$(BUILD)/build.ninja:
	@command -v $(MESON) $(NINJA) scdoc pkg-config >/dev/null || \
		{ echo "make: the build needs packages that are not installed; run: make deps" >&2; exit 1; }
	@$(call quietly,$(MESON) setup $(BUILD) $(SETUP))
	@echo $(PREFIX) >$(BUILD)/.prefix

# Unit tests need cmocka, which a plain build does without.
$(BUILD)/.tests-enabled: | $(BUILD)/build.ninja
	@$(call quietly,$(MESON) setup --reconfigure $(BUILD) -Dtests=enabled)
	@touch $@

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

deps: ## install the Debian packages that the build needs (root or sudo)
	@scripts/install-deps

demo: deps all ## build and take a tour of real calls
	@CALLBOX=$(CURDIR)/$(BUILD)/callbox scripts/demo

test: ## build and run every test; ends with `N passed, N failed`
	@scripts/install-deps --test
	@$(MAKE) -s $(BUILD)/.tests-enabled && $(MAKE) all
	@$(PYTHON) scripts/test --build $(BUILD)

.PHONY: test-frameworks
test-frameworks: ## the drop-ins in the packages that pip installs; needs a network, no part of `make test`
	@scripts/install-deps --test
	@$(MAKE) all
	@$(PYTHON) tests/frameworks/run --build $(BUILD)

.PHONY: test-mcp
test-mcp: ## have the official suite, the Inspector, SDKs and promtool judge `callbox mcp`, and wrap servers of the registry; installs Node packages into build/mcp, no part of `make test`
	@command -v npm >/dev/null || scripts/install-deps --mcp
	@command -v promtool >/dev/null || scripts/install-deps --metrics
	@$(MAKE) all
	@$(PYTHON) tests/mcp/run --build $(BUILD)

.PHONY: test-hosts
test-hosts: ## the suites in cages and emulated machines, other kernels, cgroup v2; writes docs/hosts.md, no part of `make test`
	@scripts/install-deps --test --hosts
	@$(MAKE) -s $(BUILD)/.tests-enabled && $(MAKE) all
	@$(PYTHON) tests/hosts/run --build $(BUILD)

unit: ## build and run the unit tests alone
	@scripts/install-deps --test
	@$(MAKE) -s $(BUILD)/.tests-enabled && $(MAKE) all
	@$(PYTHON) scripts/test --build $(BUILD) --only unit

# Left out are suites that starve a program of what the sanitizers themselves need.
SANITIZED = unit guard input mcp_http policy programs report schema wrap
sanitize: ## unit tests and a short run of the suites under ASan and UBSan
	@scripts/install-deps --test
	@test -e build-sanitize/build.ninja || $(call quietly,$(MESON) setup build-sanitize \
		-Dtests=enabled -Dstatic=false -Db_sanitize=address$(comma)undefined)
	@$(NINJA) -C build-sanitize
	@$(PYTHON) scripts/test --build build-sanitize --smoke $(SANITIZED:%=--only %)

lint: ## clang-format, clang-tidy, cppcheck, shellcheck, mypy, man pages, house rules
	@scripts/install-deps --test --lint
	@$(MAKE) -s $(BUILD)/.tests-enabled && $(MAKE) all
	@$(PYTHON) scripts/lint --build $(BUILD)

format: ## lay out the C sources by .clang-format
	@clang-format -i $$(find src include python tests bench examples -name '*.[ch]')

bench: ## measure beside posix_spawn, Python, bubblewrap, firejail; fails when a budget is missed
	@scripts/install-deps --bench
	@$(MAKE) all
	@$(BUILD)/bench/bench --build $(BUILD) --results bench/results \
		--rounds $(BENCH_ROUNDS) --calls $(BENCH_CALLS)

fuzz: ## fuzz each parser for FUZZ_SECONDS (30)
	@scripts/install-deps --test
	@scripts/fuzz $(FUZZ_SECONDS)

soak: ## 100000 calls of every kind, 10000 each of tools, from Python and over HTTP, 1 GB of result, 1000 deaths, every fault
	@scripts/install-deps --test
	@$(MAKE) -s $(BUILD)/.tests-enabled && $(MAKE) all
	@CALLBOX_WARDEN=$(CURDIR)/$(BUILD)/callbox $(BUILD)/tests/soak $(CURDIR)/$(BUILD)/tests/worker $(SOAK_CALLS)
	@CALLBOX_WARDEN=$(CURDIR)/$(BUILD)/callbox $(BUILD)/tests/soak-tools $(SOAK_TOOL_CALLS)
	@CALLBOX_WARDEN=$(CURDIR)/$(BUILD)/callbox PYTHONPATH=$(CURDIR)/$(BUILD)/python $(PYTHON) \
		tests/python/soak_calls.py $(SOAK_PYTHON_CALLS)
	@CALLBOX_WARDEN=$(CURDIR)/$(BUILD)/callbox PYTHONPATH=$(CURDIR)/$(BUILD)/python CALLBOX_FULL=1 \
		$(PYTHON) -m pytest -q -p no:cacheprovider tests/python/test_large_results.py
	@CALLBOX_BUILD=$(CURDIR)/$(BUILD) CALLBOX=$(CURDIR)/$(BUILD)/callbox $(PYTHON) tests/test_faults.py --full
	@CALLBOX=$(CURDIR)/$(BUILD)/callbox CALLBOX_ATTACK_LANDLOCK=1 CALLBOX_ATTACK_CLINGING=1000 \
		$(PYTHON) tests/attack/suite.py X43
	@CALLBOX_BUILD=$(CURDIR)/$(BUILD) CALLBOX=$(CURDIR)/$(BUILD)/callbox $(PYTHON) tests/test_mcp_http.py --full load:

wheel: all ## build/wheel/callbox-*.whl: the Python package with all that it needs
	@$(NINJA) -C $(BUILD) python/wheel/_callbox.abi3.so >/dev/null
	@$(PYTHON) scripts/wheel --build $(BUILD)

install: all ## install under PREFIX (/usr/local), staged in DESTDIR
	@test "$$(cat $(BUILD)/.prefix)" = "$(PREFIX)" || { \
		$(call quietly,$(MESON) setup --reconfigure $(BUILD) $(SETUP)) && \
		$(NINJA) -C $(BUILD) && echo $(PREFIX) >$(BUILD)/.prefix; }
	@DESTDIR="$(DESTDIR)" $(MESON) install -C $(BUILD) --no-rebuild
	@test -n "$(DESTDIR)" || ldconfig || true

clean: ## remove what was built
	@rm -rf $(BUILD) build-sanitize build-fuzz
