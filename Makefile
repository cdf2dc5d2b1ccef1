# The front door. Everything underneath is CMake, Ninja and the scripts in tools/.
.DEFAULT_GOAL := help
.PHONY: help run build install deb deb-test docs abi test quick tsan conformance e2e kube tier-kills scale cluster bench bench-growth soak report check lint format fuzz clean

JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 30
PREFIX ?= /usr/local
# Live tests of the Kubernetes API that hold whatever stores the objects.
CLUSTER_LIVE = kube_read,kube_write,kube_custom,kube_apply,kube_refusal,kube_formats,kube_options,kube_versions,kube_contention,kube_cluster,kube_history,kube_conversion,kube_converted,kube_webhooks,kube_webhook_verdicts,kube_policy_versions
SYSCONFDIR ?= # tools/install has the default
C_FILES = $(shell git ls-files --cached --others --exclude-standard '*.c' '*.h')

cmake = cmake -S . -B $(1) -G Ninja $(2) >$(1).log 2>&1 || { cat $(1).log; exit 1; }; rm -f $(1).log
# On a terminal ninja shows how far it is; in a log only warnings and errors are of interest.
ninja = ninja -C $(1) -j $(JOBS) $$([ -t 1 ] || echo --quiet)

help: ## show this
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## build and serve on 127.0.0.1:2379, data in ./vigil.data
	@tools/run-server

build: ## release build: build/vigil, build/vigil-bench and the libraries
	@tools/install-deps build
	@$(call cmake,build,-DCMAKE_BUILD_TYPE=Release)
	@[ -e build/vigil ] || echo "Compiling Vigil. The first time takes a few minutes on two cores."
	@$(call ninja,build) installed

install: build ## put it under PREFIX (/usr/local), or DESTDIR/PREFIX, its settings under SYSCONFDIR: programs, libraries, manual pages, completions, units
	@tools/install build "$(PREFIX)" "$(DESTDIR)" "$(SYSCONFDIR)"

deb: ## Debian packages of the programs and the libraries, in build/deb
	@tools/install-deps build deb
	@tools/build-deb build/deb

deb-test: deb ## lintian, then install, try and remove the packages in a Debian of their own; the same for the container; needs root
	@tools/run-tests packages

test: ## unit and live tests, a short simulation and short histories, under address and undefined-behaviour sanitizers
	@tools/install-deps build test
	@$(call cmake,build-test,-DVIGIL_SANITIZE=address$(comma)undefined)
	@$(call ninja,build-test)
	@tools/run-tests --build build-test unit tools peer live+crash+watch+lease+client+kube_client+ctl:short+cluster:short+live@cluster:kube_versions+sim:500+histories:60

BASE ?= HEAD
# The layers in which files differ from the commit BASE, tracked or not.
layer_folders = src bench/load tests/doubles
changed_layers = $(shell { git diff --name-only $(BASE) -- $(layer_folders); git ls-files --others --exclude-standard $(layer_folders); } | sed -nE 's,^(src|bench|tests/doubles)/([^/]+)/.*,\2,p' | sort -u)
quick: ## unit tests of the layers that differ from the commit BASE=HEAD
	@tools/install-deps build
	@$(call cmake,build-test,-DVIGIL_SANITIZE=address$(comma)undefined)
	@[ -n "$(changed_layers)" ] || { echo "No layer differs from $(BASE); BASE=main compares with the branch main."; exit 1; }
	@$(call ninja,build-test) $(changed_layers:%=layer-%)
	@tools/run-tests --build build-test unit:$(subst $(space),$(comma),$(strip $(changed_layers)))

# All live tests but those of $(1), one of memory, of which a sanitizer takes much, and one that links without the sanitizer.
live_without = live:$(subst $(space),$(comma),$(filter-out $(1) memory install_libraries,$(patsubst tests/live/%_test.py,%,$(wildcard tests/live/*_test.py))))
tsan: ## unit tests, live tests, crashes, watches, the libraries and a cluster in front under the thread sanitizer
	@tools/install-deps build test
	@$(call cmake,build-tsan,-DVIGIL_SANITIZE=thread)
	@$(call ninja,build-tsan)
	@tools/build-peer >/dev/null
	@$(call record,build-tsan) unit
	@$(call record,build-tsan) --more $(call live_without)+crash:30 watch:Guarantees+client:client$(comma)embedded+kube_client+cluster:short

.PHONY: clang msan hardening
record = tests/builds/run $(1) --command "make $@" $(if $(REPORT),--report $(abspath $(REPORT)))

clang: ## everything compiled with clang, without a warning; unit tests under its address, undefined-behaviour and conversion sanitizers
	@tools/install-deps build test fuzz
	@$(call cmake,build-clang,-DCMAKE_C_COMPILER=clang-14 -DVIGIL_SANITIZE=address$(comma)undefined$(comma)implicit-conversion)
	@$(call ninja,build-clang)
	@$(call record,build-clang) unit

# The memory sanitizer does not start with libfaketime, which the test of clocks needs.
msan: ## unit tests, live tests and the simulation under the memory sanitizer of clang
	@tools/install-deps build test fuzz
	@$(call cmake,build-msan,-DCMAKE_C_COMPILER=clang-14 -DVIGIL_SANITIZE=memory)
	@$(call ninja,build-msan)
	@tools/build-peer >/dev/null
	@$(call record,build-msan) unit $(call live_without,clock)+sim:500

hardening: build ## the program and the libraries of the release build: are they protected as they should be, and is memory returned?
	@tools/install-deps build test
	@$(call record,build) tools:hardening live:memory,memory_returned

conformance: ## clients of all kinds, a kube-apiserver's calls, the same random requests to Vigil and a real etcd, moving from one to the other
	@tools/install-deps build test clients
	@$(call cmake,build-test,-DVIGIL_SANITIZE=address$(comma)undefined)
	@$(call ninja,build-test) vigil
	@tools/build-peer >/dev/null
	@tools/build-clients
	@tools/run-tests --build build-test kubeclient+differential+ctl+etcdctl+conformance+migration+clients+kubeapi+kubectl

e2e: ## etcd 3.4.23's own end-to-end tests, on clusters of one
	@tools/install-deps build e2e
	@$(call cmake,build-test,-DVIGIL_SANITIZE=address$(comma)undefined)
	@$(call ninja,build-test) vigil
	@tools/run-e2e --build build-test

kube: ## a real kube-apiserver on top of Vigil, kubectl on top of it; builds both the first time
	@tools/install-deps build test kube
	@$(call cmake,build-test,-DVIGIL_SANITIZE=address$(comma)undefined)
	@$(call ninja,build-test) vigil kube_oracle cel_oracle kube_client_suite tier_rights
	@tools/build-peer >/dev/null
	@tools/build-kube
	@tools/run-tests --build build-test kube

KILLS ?= 100
tier-kills: ## KILLS=100 kills of the watch tier and of two kube-apiservers behind it, under load on a real etcd; every answer checked. REPORT names a file for the numbers
	@tools/install-deps build test kube
	@$(call cmake,build-test,-DVIGIL_SANITIZE=address$(comma)undefined)
	@$(call ninja,build-test) vigil
	@tools/build-peer >/dev/null
	@tools/build-kube programs
	@VIGIL_TIER_KILLS=$(KILLS) VIGIL_TIER_RESULT=$(if $(REPORT),$(abspath $(REPORT))) /usr/bin/python3 tests/kube/tier_faults_test.py -v Faults.test_kills

NODES ?= 100000
ON ?= vigil:$(NODES)
scale: ## NODES=100000 simulated nodes with their watches, Leases and pods, on Vigil; a quarter of an hour. ON=vigil:100000,real:2000 also on a real kube-apiserver. REPORT names a file for the figures
	@tools/install-deps build test kube
	@$(MAKE) --no-print-directory build
	@$(if $(findstring real,$(ON)),tools/build-kube programs)
	@bench/scale --on $(ON) $(if $(REPORT),--report $(abspath $(REPORT))) $(SCALE_FLAGS)

.PHONY: controllers-scale
controllers-scale: ## 1,000 nodes and 30,000 pods with real controllers, on Vigil and on a real kube-apiserver and etcd; an hour
	@tools/install-deps build test kube
	@$(MAKE) --no-print-directory build
	@tools/build-kube programs
	@tests/kube/controllers/scale.py --build build $(SCALE_FLAGS)

cluster: ## Vigil in front of three members of a real etcd that fail; the Kubernetes API and a real kube-apiserver on top
	@tools/install-deps build test e2e kube
	@$(call cmake,build-test,-DVIGIL_SANITIZE=address$(comma)undefined)
	@$(call ninja,build-test) vigil kube_oracle kube_client_suite
	@tools/run-e2e --build build-test --in-front V3
	@tools/build-peer >/dev/null
	@tools/build-kube
	@tools/run-tests --build build-test cluster conformance@cluster kubeapi@cluster watch@cluster:Guarantees live@cluster:$(CLUSTER_LIVE) kube@cluster:apiserver

.PHONY: sim
SEEDS ?= 500
sim: ## the whole server and its clients in a simulation with faults, SEEDS=500 times; a failing seed prints how to repeat it. REPORT names a file for the numbers, and all planted bugs are looked for
	@tools/install-deps build test
	@$(call cmake,build-test,-DVIGIL_SANITIZE=address$(comma)undefined)
	@$(call ninja,build-test) vigil_sim
	@build-test/vigil_sim --seeds=$(SEEDS) $(if $(REPORT),--plants --report=$(REPORT))

.PHONY: histories
histories_build = $(if $(REPORT),build,build-test)
histories: ## clients of Vigil and of a real etcd under faults for T seconds; every answer checked. REPORT names a file for the numbers, which are of the release build; OPERATIONS are enough
	@tools/install-deps build test
	@$(call cmake,$(histories_build),$(if $(REPORT),-DCMAKE_BUILD_TYPE=Release,-DVIGIL_SANITIZE=address$(comma)undefined))
	@$(call ninja,$(histories_build)) vigil histories_client slow_disk
	@tools/build-peer >/dev/null
	@tests/histories/run $(histories_build) --seconds $(T) $(if $(OPERATIONS),--operations $(OPERATIONS)) $(if $(REPORT),--report $(REPORT))

.PHONY: power
IMAGES ?= 10000
power: ## the release build: hardening, lengths of paths, power failures, failing system calls: IMAGES=10000 images of the disk; REPORT=FILE writes the numbers
	@tools/install-deps build test
	@$(call cmake,build,-DCMAKE_BUILD_TYPE=Release)
	@$(call ninja,build) installed power_images power_record
	@VIGIL_POWER_REPORT=$(if $(REPORT),$(abspath $(REPORT))) tools/run-tests --build build tools:hardening,count_path live:memory,memory_returned power:$(IMAGES)

bench: ## Vigil and a real etcd side by side; results in bench/results
	@tools/install-deps test
	@$(MAKE) --no-print-directory build
	@bench/run; status=$$?; tools/write-report; exit $$status

bench-growth: ## large sizes, and how cost grows with size; results in bench/results/growth.json
	@tools/install-deps test
	@$(MAKE) --no-print-directory build
	@bench/run --rows growth; status=$$?; tools/write-report; exit $$status

report: ## docs/report: everything that was measured and proved, from the data of the programs that did it
	@tools/write-report

T ?= 600
soak: build ## mixed load on both APIs for T seconds (600): memory, disk, descriptors and latency must level off
	@tools/install-deps test
	@tests/soak/run --seconds $(T) $(if $(REPORT),--report $(REPORT))

check: ## format, layers, pages, words, Python, Go, cppcheck; clang-tidy and release warnings of what has changed
	@tools/install-deps build lint
	@$(call cmake,build-lint,)
	@tools/lint build-lint --changed

lint: ## the same, with clang-tidy of all files
	@tools/install-deps build lint
	@$(call cmake,build-lint,)
	@tools/lint build-lint

docs: build ## write docs/flags.md from the table of flags
	@build/vigil man markdown >docs/flags.md

abi: build ## write src/*/libvigil*.abi and debian/*.symbols after a compatible change of the installed headers
	@tools/install-deps test
	@tools/check-abi --update build/libvigil.so.1.0.0
	@tools/check-abi --update build/libvigil-kube.so.1.0.0
	@tools/check-abi --update build/libvigil-embed.so.1.0.0
	@tools/write-symbols

format: ## clang-format everything
	@tools/install-deps lint
	@clang-format-14 -i $(C_FILES)

fuzz: ## each fuzzer for FUZZ_SECONDS of the processor, after what earlier runs have found; FUZZ_REPORT=1 also writes coverage and totals
	@tools/install-deps build fuzz
	@$(call cmake,build-fuzz,-DCMAKE_C_COMPILER=clang-14 -DVIGIL_FUZZ=ON -DVIGIL_SANITIZE=address$(comma)undefined)
	@$(call ninja,build-fuzz) fuzzers
	@tools/run-fuzzers build-fuzz $(FUZZ_SECONDS)
ifdef FUZZ_REPORT
	@$(call cmake,build-coverage,-DCMAKE_C_COMPILER=clang-14 -DVIGIL_COVERAGE=ON)
	@$(call ninja,build-coverage) corpora
	@tools/run-fuzzers build-fuzz 0 --coverage build-coverage --report docs/report/data/fuzz.json
endif

clean: ## remove every build directory; data stays
	rm -rf build build-test build-tsan build-lint build-fuzz build-coverage build-clang build-msan

comma := ,
space := $(subst ,, )
