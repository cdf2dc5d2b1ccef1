# The front door. Everything underneath is CMake, Ninja and the scripts in tools/.
.DEFAULT_GOAL := help
.PHONY: help run build install docs abi test tsan conformance e2e kube bench check lint format fuzz clean

JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 30
PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
C_FILES = $(shell git ls-files --cached --others --exclude-standard '*.c' '*.h')

cmake = cmake -S . -B $(1) -G Ninja $(2) >$(1).log 2>&1 || { cat $(1).log; exit 1; }; rm -f $(1).log
ninja = ninja -C $(1) -j $(JOBS) --quiet

help: ## show this
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## build and serve on 127.0.0.1:2379, data in ./vigil.data
	@tools/run-server

build: ## release build: build/vigil
	@tools/install-deps build
	@$(call cmake,build,-DCMAKE_BUILD_TYPE=Release)
	@$(call ninja,build) vigil libvigil libvigil_static libvigil-kube libvigil-kube_static

install: build ## put it under PREFIX (/usr/local), or DESTDIR/PREFIX: program, libraries, manual pages, completions, units
	@tools/install build "$(PREFIX)" "$(DESTDIR)" "$(SYSCONFDIR)"

test: ## unit and live tests under address and undefined-behaviour sanitizers
	@tools/install-deps build test
	@$(call cmake,build-test,-DVIGIL_SANITIZE=address$(comma)undefined)
	@$(call ninja,build-test)
	@tools/run-tests --build build-test unit tools peer live+crash+watch+lease+client+kube_client

tsan: ## unit tests, the busiest live tests and those of libvigil under the thread sanitizer
	@tools/install-deps build test
	@$(call cmake,build-tsan,-DVIGIL_SANITIZE=thread)
	@$(call ninja,build-tsan)
	@tools/run-tests --build build-tsan unit live:etcdctl,attacks,kube_read,kube_load,kube_contention,kube_large crash:30 watch:Guarantees client:client kube_client

conformance: ## clients of all kinds, a kube-apiserver's calls, the same random requests to Vigil and a real etcd, moving from one to the other
	@tools/install-deps build test clients
	@$(call cmake,build-test,-DVIGIL_SANITIZE=address$(comma)undefined)
	@$(call ninja,build-test) vigil
	@tools/build-peer >/dev/null
	@tools/build-clients
	@tools/run-tests --build build-test kubeclient+differential+etcdctl+conformance+migration+clients+kubeapi+kubectl

e2e: ## etcd 3.4.23's own end-to-end tests, on clusters of one
	@tools/install-deps build e2e
	@$(call cmake,build-test,-DVIGIL_SANITIZE=address$(comma)undefined)
	@$(call ninja,build-test) vigil
	@tools/run-e2e --build build-test

kube: ## a real kube-apiserver on top of Vigil, kubectl on top of it; builds both the first time
	@tools/install-deps build test kube
	@$(call cmake,build-test,-DVIGIL_SANITIZE=address$(comma)undefined)
	@$(call ninja,build-test) vigil kube_oracle kube_client_suite
	@tools/build-kube
	@tools/run-tests --build build-test kube

bench: build ## Vigil and a real etcd side by side; results in bench/results
	@tools/install-deps test
	@bench/run

check: ## format, layers, pages, words, Python, Go, cppcheck; clang-tidy of what has changed
	@tools/install-deps build lint
	@$(call cmake,build-lint,)
	@tools/lint build-lint --changed

lint: ## the same, with clang-tidy of all files
	@tools/install-deps build lint
	@$(call cmake,build-lint,)
	@tools/lint build-lint

docs: build ## write docs/flags.md from the table of flags
	@build/vigil man markdown >docs/flags.md

abi: build ## write src/*/libvigil*.abi after a compatible change of the installed headers
	@tools/install-deps test
	@tools/check-abi --update build/libvigil.so.1.0.0
	@tools/check-abi --update build/libvigil-kube.so.1.0.0

format: ## clang-format everything
	@tools/install-deps lint
	@clang-format-14 -i $(C_FILES)

fuzz: ## each fuzzer for FUZZ_SECONDS on its corpus
	@tools/install-deps build fuzz
	@$(call cmake,build-fuzz,-DCMAKE_C_COMPILER=clang-14 -DVIGIL_FUZZ=ON -DVIGIL_SANITIZE=address$(comma)undefined)
	@$(call ninja,build-fuzz) fuzzers
	@tools/run-fuzzers build-fuzz/fuzz $(FUZZ_SECONDS)

clean: ## remove every build directory; data stays
	rm -rf build build-test build-tsan build-lint build-fuzz

comma := ,
