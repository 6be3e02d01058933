# The project's commands. `make` alone lists them.

CARGO ?= cargo
FOLDER ?= wirestamp-demo
BENCH_FOLDER ?= wirestamp-bench
RESULTS_FOLDER ?= wirestamp-results
SOAK_SECONDS ?= 600
SEEDS ?= 0..20
TARGET = $(or $(CARGO_TARGET_DIR),target)

.PHONY: help demo demo-mesh check test test-all test-aarch64 test-vm test-web test-kafka test-spark bench bench-capture bench-flows accuracy soak chaos fmt setup setup-tests build build-mesh build-studies install-clock install-mesh \
	fuzz try-captures study-quick results

help: ## List the commands
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 15

demo: build ## Measure a call, a video and a burst across a bottleneck; print it and write a report
	target/release/wirestamp demo --output $(FOLDER)

demo-mesh: build-mesh ## Bring up a whole mesh in namespaces for half a minute, and compare its results with the truth
	$(TARGET)/release/wirestamp lab mesh --for 30s

check: setup-tests ## Fast checks: formatting, prose, circles of imports, lints, documentation, unit tests (40 s when warm)
	tools/check

test: setup-tests ## All tests that this machine can run (as root: also those with real packets; up to half an hour)
	tools/test

test-all: setup-tests ## What CI runs: check, test, the page, the fuzz targets, the virtual machine, quick studies
	tools/test-all

test-web: setup-tests ## Test the page of the mesh in Chromium, against a controller and probes (root; a minute after the build)
	tools/test-web

test-vm: setup-tests ## Test the kernel module, the HPET and netem in a virtual machine (downloads 90 MB)
	tools/test-vm

test-aarch64: ## Test the clock crate on an emulated CPU of that kind (downloads a compiler, 150 MB)
	tools/test-aarch64

test-kafka: setup-tests ## Test the delivery of a mesh through Apache Kafka (root; downloads 46 MB; ten minutes after the build)
	tools/setup-kafka
	WIRESTAMP_NO_SKIP=1 $(CARGO) test --locked --workspace --features wirestamp/mesh,wirestamp/studies,wirestamp/kafka \
		--lib --test command kafka -- --show-output --test-threads 1
	WIRESTAMP_NO_SKIP=1 WIRESTAMP_KAFKA_SCHEDULES=10 \
		$(CARGO) test --locked --workspace --features wirestamp/mesh,wirestamp/studies,wirestamp/kafka \
		--test kafka --test kafka_access --test kafka_cluster -- --show-output --test-threads 1

test-spark: setup-tests ## Compare results that Spark and DuckDB compute from an archive with the collector's (downloads 500 MB)
	tools/setup-peers
	tools/setup-spark
	tools/test-spark

bench: setup-tests ## Measure what stamps, conversions, wake-ups, matching, collecting and active tests cost (root; on an idle machine)
	$(CARGO) bench --quiet -p wirestamp-clock --bench sleep
	$(CARGO) bench --quiet -p wirestamp-clock --bench stamp
	$(CARGO) bench --quiet -p wirestamp-capture --bench softirq
	$(CARGO) bench --quiet -p wirestamp-metrics --bench correlator
	$(CARGO) bench --quiet -p wirestamp-mesh --bench collector
	tools/setup-active
	$(CARGO) bench --quiet -p wirestamp --bench active -- $(ARGS)

bench-capture: setup-tests build ## Compare capture tools: loss, CPU time, stamps (root; 25 minutes, ARGS=--quick: 2)
	tools/setup-bench
	$(CARGO) build --release --locked --manifest-path bench/netring/Cargo.toml --target-dir $(TARGET)/netring
	$(CARGO) bench --locked --quiet -p wirestamp-studies --bench capture -- --output $(abspath $(BENCH_FOLDER)) $(ARGS)

accuracy: setup-tests ## Compare the wall clock with the system clock for 20 minutes, half of them busy
	$(CARGO) bench --quiet -p wirestamp-clock --bench accuracy -- --seconds 600
	$(CARGO) bench --quiet -p wirestamp-clock --bench accuracy -- --seconds 600 --busy

chaos: setup-tests ## Random faults of all nodes of a mesh under load, from seeds (root; half a minute each, SEEDS=0..200)
	WIRESTAMP_CHAOS=$(SEEDS) $(CARGO) test --locked --workspace --features wirestamp/mesh,wirestamp/studies,wirestamp/kafka --test command chaos -- --show-output

soak: setup-tests ## Capture 200,000 packets a second for 10 minutes: is memory flat, every packet accounted for
	$(CARGO) bench --quiet -p wirestamp --bench soak -- --seconds $(SOAK_SECONDS)

bench-flows: setup-tests ## Compare `flows` with capinfos and tshark on a capture of 1 GB (tshark takes minutes; ARGS="--rounds 1")
	$(CARGO) bench --quiet -p wirestamp --bench flows -- $(ARGS)

study-quick: setup-tests ## Run every study quickly and open the reports in Chromium (root; at most 15 minutes)
	tools/study-quick

results: setup-tests build-studies ## Run studies in full, all of them for hours, and archive them in docs/results (root; STUDIES="timers loss")
	tools/archive-studies $(RESULTS_FOLDER) $(STUDIES)

fmt: ## Format the code
	$(CARGO) fmt --all

build: setup ## Build the tool
	$(CARGO) build --release --locked -p wirestamp

build-mesh: setup ## Build the tool with the mesh: controller and its page, probe, pki (four minutes more)
	tools/build-web
	$(CARGO) build --release --locked -p wirestamp --features mesh

build-studies: setup ## Build the tool with the mesh and the studies of papers (`wirestamp study`)
	tools/build-web
	$(CARGO) build --release --locked -p wirestamp --features mesh,studies

install-clock: ## Install the clock's C library under PREFIX (by default /usr/local) in DESTDIR
	tools/install-clock

install-mesh: build-mesh ## Install the command with the mesh and its services (systemd) under PREFIX in DESTDIR
	tools/install-mesh

fuzz: setup-tests ## Fuzz every parser for a minute each (SECONDS_EACH=60)
	tools/fuzz

try-captures: setup-tests ## Read the captures that tcpdump is tested with, many of them damaged (downloads 2 MB)
	tools/try-captures

setup: ## Find what is missing to build, and install it (as root) or print the command that does
	@tools/setup

setup-tests: ## The same for what the tests need
	@tools/setup --tests
