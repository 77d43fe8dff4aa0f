# `make` without a target lists the targets.
.DEFAULT_GOAL := help
.PHONY: help run demo build check test test-all lint-go lint-web lint-python lint-prose format deps-typescript tidy dist build-bench test-dist test-long test-outages deps lint generate check-generated fuzz baselines bench bench-quick bench-ls bench-sdks results microbench bench-compare clean test-cluster test-failover test-durability test-hostile test-model test-history test-restarts test-upgrades test-show test-cron test-deploy manifests test-conformance test-sdks test-typescript mutants test-python deps-python test-rust deps-rust record-looks test-ui test-ui-flood test-ui-scale test-valkey

# Version information in the binary. The go command records the same, but not in git worktrees.
COMMIT_BUILT ?= $(shell git describe --always --dirty --abbrev=7 --exclude '*' 2>/dev/null)
DATE_BUILT ?= $(shell TZ=UTC0 git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null)
LDFLAGS = -s -w -X main.commit=$(COMMIT_BUILT) -X main.date=$(DATE_BUILT)
# All targets compile packages in the same way, so that each is compiled once: without cgo, as in the released binary, and without debug
# information, which takes an eighth of the time. Stack traces and profiles do not need it.
export CGO_ENABLED ?= 0
export GOFLAGS := $(shell go env GOFLAGS) -gcflags=all=-dwarf=false
FUZZTIME ?= 20s
LONGFUZZTIME ?= 2m
# The SDK is a separate module, which ./... omits.
PACKAGES := ./... ./sdk/go/...
# Modules that connect the SDK to other libraries, so that it needs none.
ADAPTERS := sdk/go/lubdubprom sdk/go/lubdubotel
GENERATED := api/openapi.json docs/configuration.md docs/metrics.md docs/architecture.md docs/cli.md docs/roles.md ui/dist ui/src/roles.gen.ts ui/src/words.gen.ts sdk/python/src/lubdub/types.py sdk/python/src/lubdub/_calls.py sdk/go/client/calls.go sdk/typescript/src/generatedcalls.ts sdk/typescript/src/generatedtypes.ts

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## run API, sweeper, embedded Redis and a simulated fleet in one process; Ctrl-C stops it
	bin/lubdub dev

demo: build ## run the same for about 20 s and print a summary; fails if any verdict was wrong
	bin/lubdub dev --for 20s --check

build: ## build the static binary bin/lubdub
	go build -trimpath -ldflags '$(LDFLAGS)' -o bin/lubdub ./cmd/lubdub

# These files depend only on the sources, the Go version and the commit's date: builds are reproducible.
DIST ?= bin/dist
RELEASE = $(shell sed -n 's/^const release = "\(.*\)"$$/\1/p' cmd/lubdub/versioncmd.go)
dist: ## build static binaries for linux and darwin, amd64 and arm64, each with an SBOM, and SHA256SUMS, in bin/dist
	rm -rf $(DIST) && mkdir -p $(DIST) && cp LICENSE $(DIST)
	for on in linux-amd64 linux-arm64 darwin-amd64 darwin-arm64; do \
	  GOOS=$${on%-*} GOARCH=$${on#*-} go build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' \
	    -o $(DIST)/lubdub-$(RELEASE)-$$on ./cmd/lubdub || exit 1; \
	done
	go run ./internal/dist -version '$(RELEASE)' -date '$(DATE_BUILT)' $(DIST)

test-dist: ## run 'make dist' twice, in two folders and with empty caches: the files are identical; about 5 minutes
	go test -tags long -count=1 -timeout 60m -v -run '^TestLongDist$$' ./internal/dist

deps: # install what the tests need in addition to Go
	@sh internal/ci/install-redis.sh

check: lint-go ## lint Go, and run the tests of changed packages on miniredis only; no Redis needed
	go test -short -vet=off $(PACKAGES)

# Tests wait more than they compute, so that packages are tested two for each core.
PACKAGES_AT_ONCE := $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))
test: deps ## run the tests of every package, on miniredis and on a real Redis (installed if missing)
	go test -p $(PACKAGES_AT_ONCE) -vet=off -ldflags='-s -w' -count=1 -timeout 15m $(PACKAGES)
	@for of in $(ADAPTERS); do (cd $$of && GOWORK=off go test -vet=off -count=1 ./...) || exit 1; done

# The detector does not observe gopher-lua, which interprets scripts for miniredis in one goroutine: that saves a fifth of the time there.
RACE := -race -gcflags='github.com/yuin/gopher-lua/...=-race=false'
RACE_TEST := CGO_ENABLED=1 go test $(RACE) -vet=off -ldflags='-s -w' -count=1 -timeout 20m
# Tests that run only here call testenv.OnlyAll. Most tests run on Redis only with the race detector (redistest.Each). Those of cmd/lubdub
# run whole deployments, which time out if other tests use the CPU; while they wait, the other packages are compiled.
test-all: deps ## after 'make test': run all tests with the race detector, including those that need load, time or many seeds
	go test -vet=off -ldflags='-s -w' -count=1 -p 1 -timeout 10m -run '^TestScripts' ./tracker/... # see testenv.MeasuresScripts
	CGO_ENABLED=1 go list $(RACE) -export -test ./cmd/lubdub >/dev/null
	CGO_ENABLED=1 nice -n 19 go list $(RACE) -export -test $(PACKAGES) >/dev/null & { $(RACE_TEST) ./cmd/lubdub && wait; } || { kill $$!; exit 1; }
	$(RACE_TEST) $$(go list $(PACKAGES) | grep -v /cmd/lubdub$$)

test-all test-valkey test-outages test-cluster test-failover test-durability test-hostile test-model test-history test-restarts test-upgrades \
  test-show test-webhooks test-deploy mutants: export LUBDUB_TEST_ALL = 1

VALKEY_PACKAGES ?= ./lua ./tracker/... ./api/... ./cmd/lubdub ./internal/redistest
test-valkey: ## test VALKEY_PACKAGES on Valkey instead of Redis (installed if missing); about 8 minutes
	@sh internal/ci/install-redis.sh valkey
	LUBDUB_TEST_REDIS_SERVER=valkey-server go test -vet=off -count=1 -timeout 30m $(VALKEY_PACKAGES)

test-long: test-all test-valkey test-outages test-cluster test-failover test-durability test-hostile test-model test-history test-restarts test-upgrades test-show test-dist test-webhooks test-cron test-sdks mutants ## run all long tests one after the other: hours; results are recorded in docs/reliability/

test-outages: deps ## test each outage with 10,000 tasks and 2,000 workers (docs/reliability/outages.md)
	go test ./cmd/lubdub -count=1 -timeout 30m -v -run '^TestOutagesExpireNoTask$$' -outage-tasks 10000 -outage-workers 2000 -outage-timeout 9s
	go test ./cmd/lubdub -count=1 -timeout 60m -v -run '^TestOutagesExpireNoTask$$/haproxy' -outage-tasks 10000 -outage-workers 2000 -outage-timeout 45s
	go test -tags long ./cmd/lubdub -count=1 -timeout 10m -v -run '^TestLongShortOutages$$' -outage-timeout 12s
	go test ./tracker -count=1 -timeout 30m -v -run '^TestAClockStepExpiresNoLiveTaskOrWorker$$' -step-tasks 10000 -step-workers 2000

test-cluster: deps ## test Redis Cluster under load: slots moved, primaries killed and frozen, replicas frozen; about 5 minutes
	go test -tags long -count=1 -timeout 30m -v -run '^TestLong(Cluster|NothingIsMissed)$$' ./tracker/store ./tracker/events

test-failover: deps ## test Redis Sentinel under load: primaries killed, frozen and failed over, while servers start; about 7 minutes
	go test -tags long -count=1 -timeout 30m -v -run '^TestLongFailover' ./tracker/store
	go test -tags long -count=1 -timeout 20m -v -run '^TestLongStarts' ./cmd/lubdub

test-durability: deps ## kill the primary 100 times each with durability replicated and fsync, and measure what memory loses; about 20 minutes
	go test -tags long -count=1 -timeout 60m -v -run '^TestLong(Replicated|Fsync|Memory)$$' ./tracker/store

test-hostile: deps ## run every fuzz target for LONGFUZZTIME (2m), and misbehaving clients during outages, with and without the event loop
	go test -tags long -count=1 -timeout 20m -v -run '^TestLongOddClients$$' ./api
	@$(MAKE) --no-print-directory fuzz FUZZTIME=$(LONGFUZZTIME)

# Each model runs in its own process, so that two cores are used.
MODEL_RUNS ?= 10000
test-model: deps ## test the state machines, MODEL_RUNS (10,000) runs of 100 steps each on a real Redis, a fiftieth of that on miniredis
	go test -c -o bin/model.test ./tracker
	cd tracker && printf '%s\n' TestModel TestFleetModel | xargs -P 2 -I{} ../bin/model.test -test.run '^{}$$/^redis$$' -test.v -test.timeout 0 -rapid.steps=100 -rapid.checks=$(MODEL_RUNS)
	cd tracker && printf '%s\n' TestModel TestFleetModel | xargs -P 2 -I{} ../bin/model.test -test.run '^{}$$/^miniredis$$' -test.v -test.timeout 0 -rapid.steps=100 -rapid.checks=$$(( $(MODEL_RUNS) / 50 ))

test-history: deps ## test 100 rounds of histories under faults, lost replies of every script, and 50,000 due tasks contended by sweepers and workers
	go test -count=1 -timeout 60m -v ./tracker -run '^TestHistories$$' -history.rounds 100
	go test -count=1 -timeout 30m -v ./tracker -run '^TestEveryLostReplyIsMadeGood$$' -lost-replies 3
	go test -count=1 -timeout 20m -v ./tracker/sweep -run '^TestSweepersAgainstCompleters$$/^redis$$' -due 50000

test-restarts: deps ## test 100 rolling restarts of replicas under load
	go test -count=1 -timeout 30m -v ./cmd/lubdub -run '^TestRollingRestarts$$' -restarts 100

test-upgrades: deps ## run another release (COMMIT=<commit>) and this tree on one store, upgraded and rolled back 10 times in both orders; about 3 minutes
	go test -count=1 -timeout 30m -v ./cmd/lubdub -run '^TestTwoReleasesRunConcurrently$$' -upgrade-rolls 10 -upgrade-tasks 500 $(if $(COMMIT),-other-commit $(COMMIT))

test-show: ## run 'make demo' 20 times and 'make run' for 10 minutes while four busy loops use the cores; about 20 minutes
	go test -tags long -count=1 -timeout 60m -v -run '^TestLong(Demo|Show)$$' ./cmd/lubdub

bench-ls: deps build ## measure the time to the first row of each 'lubdub … ls' with 100,000 tasks and 10,000 workers; a minute
	go test -tags long -count=1 -timeout 20m -v -run '^TestLongFirstRowOfEachList$$' ./cmd/lubdub

deps-node: deps # also install Node
	@sh internal/ci/install-redis.sh node

deps-typescript: deps-node # also install what the TypeScript SDK's tests and prettier need
	@cd sdk/typescript && { cmp -s package-lock.json node_modules/.installed || { npm ci --loglevel error --no-audit --no-fund && cp package-lock.json node_modules/.installed; }; }

deps-ui: deps # also install what the dashboard's tests need
	@sh internal/ci/install-redis.sh ui
	@cd ui && { cmp -s package-lock.json node_modules/.installed || { npm ci --no-audit --no-fund --ignore-scripts && cp package-lock.json node_modules/.installed; }; }

test-ui: deps-ui deps-typescript build ## test the dashboard: its types against openapi.json, a browser against server, Redis and fleet, and incidents with real processes; EVERYWHERE=1: each action at each width in each theme
	cd ui && node_modules/.bin/openapi-typescript ../api/openapi.json -o src/api.gen.ts && node_modules/.bin/tsc -p .
	cd sdk/typescript && npm run --silent build
	cd ui && node --test --test-timeout=1800000 --test-reporter=spec test/*.test.mjs

record-looks: deps-ui build ## record the answers and pictures that looks.test.mjs compares pages with, after a change of the API or of what pages read
	cd ui && node test/record.mjs && UPDATE=1 node --test test/looks.test.mjs

test-ui-flood: deps-ui build ## load Events, Overview, Tasks and Pulse with 5,000 events a second for FLOOD (60) seconds each, Pulse with 10,000 workers: memory, long tasks
	cd ui && node test/flood.mjs $(or $(FLOOD),60)

test-ui-scale: deps-ui build ## measure each page's calls with 100,000 tasks and 10,000 live workers, and the cost of 100 open dashboards; 5 minutes
	cd ui && node test/scale.mjs

test-webhooks: deps-node ## kill sweepers while Node receives webhooks and verifies each with npm's standardwebhooks; a minute
	go test -tags long -count=1 -timeout 20m -v -run '^TestLongWebhook' ./cmd/lubdub

test-typescript: build deps-typescript ## test the TypeScript SDK: its types against api/openapi.json, its unit tests, a real server, an empty project, and the package to publish
	cd sdk/typescript && npm test && npm run publint && npm run e2e

test-conformance: deps-node deps-rust ## test every SDK against the cases in sdk/conformance, each case against a runner with that fault, half a minute of outages, and examples/media through faults; two minutes
	go test -count=1 -timeout 10m -run '^Test(Conformance|EveryCaseIsSeenToFail)$$' ./sdk/conformance -sdks all
	go test -tags long -count=1 -timeout 10m -v -run '^TestLongSDKs$$' ./cmd/lubdub -sdks all
	go test -tags long -count=1 -timeout 10m -v -parallel 3 -run '^TestLongMedia$$' ./examples/media/studio

test-sdks: deps-node deps-rust ## test every SDK's workers through ten minutes of restarts, freezes, kills, stops and cut connections: 20 processes and 2,000 running tasks each
	go test -tags long -count=1 -timeout 60m -v -run '^TestLongSDKs$$' ./cmd/lubdub -sdks all -sdk-workers 20 -sdk-tasks 2000 -sdk-for 10m

CRON_EXPRESSIONS ?= 10000
test-cron: deps-node ## compare CRON_EXPRESSIONS (10,000) random cron expressions with npm's croner, over five years each; about 8 minutes
	go test -tags long -count=1 -timeout 60m -v -run '^TestLongCroner$$' ./internal/cron -croner.expressions $(CRON_EXPRESSIONS)

deps-python: # install what the tests of the Python SDK need
	@sh internal/ci/install-redis.sh python

test-python: build deps-python ## test the Python SDK on every installed interpreter from 3.9 to 3.13, also against a real server, and its types; a minute
	cd sdk/python && npm ci --silent --no-audit --no-fund --omit=optional
	python3 sdk/python/tools/test.py

deps-rust: deps # also install cargo and the crates that the Rust SDK needs
	@sh internal/ci/install-redis.sh rust

test-rust: deps-rust ## test the Rust SDK: its format, clippy, unit tests and the examples in its README; 'make test-conformance' has its cases
	sdk/rust/tools/cargo fmt -- --check
	sdk/rust/tools/cargo clippy --quiet --all-targets -- -D warnings
	sdk/rust/tools/cargo test --quiet

test-deploy: ## test deploy/: each alert fires only when it should; dashboard queries are valid; alerts agree with lubdub status in real situations; the systemd unit is valid and restricted; chart, manifests and Compose file pass their tools and match the settings
	@sh internal/ci/install-redis.sh deploy
	@mkdir -p bin/systemd
	promtool check config --syntax-only deploy/observability/prometheus.yml
	cd deploy/observability && promtool check rules rules.yml && promtool test rules *_test.yml
	DASHBOARD_RULES=$(CURDIR)/bin/dashboards.yml go test -count=1 -run '^Test(Dashboards|EveryView)' ./cmd/lubdub && promtool check rules bin/dashboards.yml
	@sed 's#/usr/local/bin/lubdub#/bin/true#' deploy/systemd/lubdub.service > bin/systemd/lubdub.service
	systemd-analyze verify bin/systemd/lubdub.service
	cd deploy/check && GOWORK=off go test -vet=all -count=1 .
	@systemd-analyze security --offline=true --threshold=20 --no-pager bin/systemd/lubdub.service > bin/systemd/security.txt || \
	  { cat bin/systemd/security.txt; exit 1; }; tail -n 1 bin/systemd/security.txt

manifests: ## regenerate deploy/kubernetes from the chart in deploy/helm
	cd deploy/check && GOWORK=off go test -count=1 -run '^TestManifestsAreTheCharts$$' . -update

mutants: deps ## inject bugs; the tests must detect each
	go test -tags long -count=1 -timeout 0 -v -run '^TestLongMutants$$' ./internal/mutants

# `go mod tidy` resolves every module that go.mod requires, including the SDK of a release that is not published yet.
SDK := github.com/lubdub-io/lubdub/sdk/go
tidy: ## run `go mod tidy`, even if the SDK version that go.mod requires is not published yet
	@mkdir -p bin && cp go.mod bin/tidy.mod && cp go.sum bin/tidy.sum
	go mod edit -replace $(SDK)=./sdk/go bin/tidy.mod
	GOWORK=off go mod tidy -modfile=bin/tidy.mod
	go mod edit -dropreplace $(SDK) bin/tidy.mod
	cp bin/tidy.mod go.mod && cp bin/tidy.sum go.sum
	for of in sdk/go $(ADAPTERS); do (cd $$of && GOWORK=off go mod tidy) || exit 1; done
	cd deploy/check && GOWORK=off go mod tidy

lint: lint-go lint-web lint-python lint-prose ## check Go (gofmt, go vet, staticcheck), TypeScript and the dashboard (prettier), Python (black), documents and comments (Vale)

lint-go:
	@test -z "$$(gofmt -l . | tee -a /dev/stderr)" || { echo "run gofmt -w on these files" >&2; exit 1; }
	go vet -tags long $(PACKAGES)
	go tool staticcheck -tags long $(PACKAGES)
	for of in bench/baselines/etcd bench/baselines/asynq $(ADAPTERS); do (cd $$of && GOWORK=off go vet ./...) || exit 1; done

WEB = 'ui/src/**/*.{ts,tsx,css}' 'ui/test/**/*.mjs' 'sdk/typescript/{src,test,e2e,bench}/**/*.{ts,mjs}' 'sdk/typescript/*.mjs' 'examples/**/*.ts'
lint-web: deps-typescript
	@sdk/typescript/node_modules/.bin/prettier --log-level warn --check $(WEB) || { echo "run make format on these files" >&2; exit 1; }

lint-python:
	@sh internal/ci/install-redis.sh lint
	black --quiet --config sdk/python/pyproject.toml --check sdk/python examples || { echo "run make format" >&2; exit 1; }

# Words to avoid are in .vale, exceptions with their reasons in .vale.ini. bin/prose/FILE.txt:LINE is the text in line LINE of FILE.
VALE = github.com/vale-cli/vale/v3/cmd/vale@v3.20.0
# Its parsers of programming languages are C, which takes minutes to optimize.
bin/vale:
	CGO_ENABLED=1 CGO_CFLAGS=-O0 GOBIN=$(CURDIR)/bin go install $(VALE)

lint-prose: bin/vale
	go test ./internal/archtest -run '^TestProse$$' -count=1 -prose $(CURDIR)/bin/prose
	bin/vale --output=line $$(git ls-files '*.md' '*.go' ':!bench/results') bin/prose

format: deps-typescript ## format Go, TypeScript and Python
	gofmt -w .
	sdk/typescript/node_modules/.bin/prettier --log-level warn --write $(WEB)
	@sh internal/ci/install-redis.sh lint
	black --quiet --config sdk/python/pyproject.toml sdk/python examples

generate: ## regenerate files that are generated from the sources
	go test ./api -run '^TestOpenAPIIsUpToDate$$' -count=1 -update
	go run ./internal/sdkcalls
	@$(MAKE) --no-print-directory build
	python3 sdk/python/tools/generate.py
	go test ./api -run '^Test(TheDashboardKnowsWhatRolesMayDo|DocumentedRoles)$$' -count=1 -update
	go test ./internal/cli/why -run TestTheDashboardHasTheseSentences -count=1 -update
	sh ui/build.sh
	go test ./internal/archtest -run TestTrackerPackageTableIsCurrent -update
	bin/lubdub config reference > docs/configuration.md
	bin/lubdub metrics reference > docs/metrics.md
	bin/lubdub reference > docs/cli.md

check-generated: generate ## fail if a generated file is out of date
	git diff --exit-code -- $(GENERATED)

fuzz: ## run every fuzz target for FUZZTIME (20s)
	@go list $(PACKAGES) | while read -r pkg; do \
	  go test -list '^Fuzz' "$$pkg" | grep '^Fuzz' | while read -r target; do \
	    echo "$$pkg $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$pkg" || exit 1; \
	  done || exit 1; done

baselines: deps-node # build the baselines of the benchmark; etcd and asynq are separate modules, BullMQ is from npm
	go build -trimpath -o bin/baselines/ ./bench/baselines/empty ./bench/baselines/naive ./bench/baselines/autopipeline ./bench/baselines/zadd ./bench/baselines/life
	for of in etcd asynq; do (cd bench/baselines/$$of && GOWORK=off go build -trimpath -o ../../../bin/baselines/$$of .) || exit 1; done
	cd bench/baselines/bullmq && npm ci --silent --no-audit --no-fund
	printf '#!/bin/sh\nexec node "%s/bench/baselines/bullmq/life.mjs" "$$@"\n' '$(CURDIR)' > bin/baselines/bullmq && chmod +x bin/baselines/bullmq

build-bench: build baselines # build the benchmark, the server and the baselines
	go build -trimpath -o bin/lubdub-bench ./cmd/lubdub-bench

bench: build-bench deps ## run the whole benchmark with its baselines, about 20 minutes; report in bin/report/
	bin/lubdub-bench --report bin/report/ $(BENCHFLAGS)

bench-quick: build-bench deps ## run the same with small counts, a minute or two
	bin/lubdub-bench --quick --report bin/report/quick $(BENCHFLAGS)

bench-sdks: build deps-node deps-python ## measure what the SDKs cost the processes that use them: heartbeats, progress reports, empty tasks; 6 minutes
	go test -run '^$$' -bench 'NoOp/worker-to-bare|BeatOfTenThousand' ./sdk/go/worker
	go test -run '^$$' -bench TenThousandTracked -benchtime 20x ./sdk/go/worker
	go test -run '^$$' -bench Progress ./sdk/go/client
	python3 sdk/python/tools/speed.py
	cd sdk/typescript && npm ci --loglevel error --no-audit --no-fund && npm run build && npm run bench

results: ## replace bench/results with the report of 'make bench'; README, costs and docs/capacity.md use its figures
	@result=$$(go run ./bench/publish $(RESULTSFLAGS) bin/report/bench) && \
	go run ./cmd/lubdub-bench costs "$$result" > internal/capacity/costs.json && \
	go test ./cmd/lubdub -run '^TestCapacityDocument$$' -update-capacity && \
	echo "saved as $$result; commit it with README.md, docs/capacity.md and internal/capacity/costs.json"

microbench: deps ## run the benchmarks of the packages
	go test -run '^$$' -bench . -benchmem $(PACKAGES)

bench-compare: deps ## compare the benchmarks of the packages with those of COMMIT=<rev>, run alternately, with benchstat
	@BENCH='$(BENCH)' PKGS='$(PKGS)' COUNT='$(COUNT)' BENCHTIME='$(BENCHTIME)' WITH='$(WITH)' sh bench/compare.sh '$(COMMIT)'

clean: ## remove build output
	rm -rf bin
