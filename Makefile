# Every target works on a clean clone with Go, git and make. The first target that needs a control plane compiles it, which
# takes minutes.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c

# Objects for `make bench-crd` and `make bench-peers`, sizes for `make bench-manager`, `make bench-revision`, `make bench-externalname`,
# `make bench-plan` and `make bench-hub`, versions for `make matrix`, time per target for `make fuzz`, and further flags of the demo, the tests and the
# linter.
N          ?= 3000
CRDS       ?= 50
OBJECTS    ?= 1000
IDLE       ?= 10m
IDLE_CRDS  ?= 200
ROUNDS     ?= 5
WINDOW     ?= 30s
VMS        ?= 1000
PLAN       ?= 0
FLEET      ?= 10000
CLUSTERS   ?= 300
CONTEXTS   ?= 4
FUZZTIME   ?= 20s
DEMO_FLAGS ?=
BENCH_FLAGS ?=
TEST_FLAGS ?=
SCREENSHOTS ?=
VERSIONS    ?=
LINT_FLAGS ?=
# A release, and the platforms of a trial (all, unless set).
VERSION    ?=
PLATFORMS  ?=

# Programs are static. Only tests under the race detector use cgo, which needs a C compiler: where there is none, go env
# reports CGO_ENABLED=0, and tests run without the race detector. A make within make gets RACE as an argument, because it
# inherits CGO_ENABLED=0.
# A process under the race detector sleeps a second when it exits, unless GORACE says otherwise.
RACE := $(if $(filter 1,$(shell go env CGO_ENABLED)),CGO_ENABLED=1 GORACE=atexit_sleep_ms=0 go test -race,go test)
export CGO_ENABLED := 0

# Packages whose goroutines share data. The race detector takes several times the CPU time, so that only they use it:
#   walk                     workers, the limiter and the report
#   crdmigrator, revision, internal  sources of walk, and the actions of its workers
#   externalname             claims of external names, which the workers of a provider share
#   the COMMANDS in cmd/internal  progress and signals during a run
#   cmd/internal/controller  work queues of the manager; cmd/internal/operator starts whole managers
#   test/crdmigrator, test/revision  the libraries against an API server
#   test/externalname        providers against an API server
# Tests of other packages run programs, which are compiled without it, or one goroutine of ours at a time.
COMMANDS := frame agent cluster crd evidence explain externalname lint manager plan rbac resource revision root version
RACED := walk crdmigrator revision internal externalname $(COMMANDS:%=cmd/internal/%) cmd/internal/controller cmd/internal/operator \
	test/crdmigrator test/revision test/externalname

# With a server, most tests of these packages repeat the same concurrent code for another answer of the server. The tests
# in RACED_TESTS use the race detector: in each, goroutines of ours meet in another way. The others run without it.
# make race runs all of them with it. test/raced fails where no test has the name.
RACED_SERVERS := cmd/internal/operator test/crdmigrator test/revision test/externalname
# Workers of a run, their limits, and what stops them.
RACED_TESTS := TestByteBudgetCountsCleanups TestByteBudgetIgnoresWritesThatStoreNothing TestSlowWebhookDelaysOnlyItsObjects \
	TestConversionWebhookRestartsMidRun TestCRDDeletedMidRun TestObjectsThatComeAndGo TestCancelledBeforeTheTrim \
	TestCancelledRunIsResumed TestPreflightIsBoundedInTime TestConcurrentWritesAreNoIncompleteList TestTwoMigratorsAtOnce \
	TestMigratorOvertaken TestThrottledRunFailsNothing TestAPIServerRestartMidRun TestWriteMeetsAWriteOfAnotherClient
# Reconcilers in an operator, with its cache.
RACED_TESTS += TestReconcileWorkedExample TestReconcileEventsReachTheCRD TestReconcileStopsWhereTheLabelIsRemoved \
	TestReconcileEndsWhenTheCRDIsDeleted TestReconcileResumesAfterAStop TestReconcileRemembersItsWrites \
	TestUseCache_OffersCachedObjectsFirst TestUseCache_ConflictOverAStaleObjectProvesNothing \
	TestUseCache_CleanupReadsLiveAfterAConflict TestWaiting_DoesNotBlockAnotherCRD TestWaiting_ForAnotherMigrator
# Scans and upgrades of revisions.
RACED_TESTS += TestMissingRevisionsAreReadSideBySide TestBoundOfLiveReadsIsAState TestScanOfANamespaceDelaysNoOther \
	TestUpgradeRepointsEveryReference TestSharedRevisionIsLeftByBoth TestTwoRollbacksShareANewRevision
# Whole managers: each of their controllers, several CRDs at once, two managers, and an API server that goes away.
RACED_TESTS += TestCRDInScopeIsMigratedByItself TestSuspendStopsWithinAPage TestHotObjectStopsNothing TestTwoManagersByMistake \
	TestStandbyTakesOver TestOneManagerLeadsEachFeature TestAPIServerAway TestThrottledByPriorityAndFairness \
	TestFailingObjectStopsNoOther TestHangingWebhookStopsNoOther TestClusterMigrationRunsWithItsOwnRole \
	TestTriggerHasEveryRevisionUpgraded TestContinuousTriggerFindsLaterRevisions TestTriggerIsDeletedAfterItsTTL \
	TestTriggerIsNotDoneWhileTheCacheIsBehind TestMachineIsDeletedBeforeItsUpgrade TestStormOf429LeavesNoScanBehind
# Workers of a provider, a provider that dies, and a fleet under other clients.
RACED_TESTS += TestConcurrentEdit TestExternalConflict TestSharedName TestRebound TestStaleCache TestKilledInsideCreate \
	TestHangingCreate TestSetup TestDatabase TestDatabaseKilledWhilePending TestFleetRenamesAndRollsBack TestFleetOtherClients

# slow: the packages that start a control plane, themselves or in their tests, and the one that compiles operators.
# quick: all others, among them those that start one only for another target. Go calls all modules of go.work `work`.
imports = go list -f '{{.ImportPath}} {{.Imports}} {{.TestImports}} {{.XTestImports}}'
server  = ($$1 !~ /godwit\/(bench\/|test\/hub\/e2e$$)/ && /godwit\/test\/controlplane/ || $$1 ~ /godwit\/test\/embed$$/)
slow    = awk '$(server) {print $$1}'
quick   = awk '!$(server) {print $$1}'
raced   = go list $(RACED:%=./%/...)
empty  :=
names   = ^($(subst $(empty) $(empty),|,$(strip $(RACED_TESTS))))$$

# Results of tests with servers are not cached, because go test does not watch the binaries in bin. make verify runs vet.
# Without tables for a debugger, a test binary takes a third less CPU time to link.
UNITS   := -vet=off -ldflags=-s $(TEST_FLAGS)
SERVERS := -vet=off -ldflags=-s -count=1 -timeout 30m -p 2 $(TEST_FLAGS)
# The packages that last longest begin first, and before the end those that wait more than others.
LONGEST := ./cmd/godwit ./cmd/internal/guide ./cmd/internal/chart ./test/controlplane ./examples/demo ./test/hub ./test/kubevirt/upgrade

.DEFAULT_GOAL := help

##@ Use

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*## "} /^##@ / {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: demo
demo: controlplane build ## Migrate 2,000 real objects on a real API server. DEMO_FLAGS=--keep leaves it running; DEMO_FLAGS=revisions upgrades ControllerRevisions of KubeVirt, DEMO_FLAGS=names renames external names, DEMO_FLAGS=clusters moves managed clusters.
	@go build -o bin/demo ./examples/demo
	@bin/demo $(DEMO_FLAGS)

.PHONY: examples
examples: controlplane ## Run the operators of examples/ on a real API server, and see them migrate their objects.
	@go run ./test/examples

.PHONY: build
build: ## Compile bin/godwit and its name as a plugin of kubectl, bin/kubectl-godwit.
	@echo "build: bin/godwit and the link bin/kubectl-godwit"
	@go build -o bin/godwit ./cmd/godwit
	@ln -sf godwit bin/kubectl-godwit

.PHONY: controlplane
controlplane: ## Compile etcd, kube-apiserver and kube-controller-manager: minutes once, then an instant.
	@tools/controlplane/build.sh

.PHONY: slapd
slapd: ## Provide slapd for the tests of external names: Debian's packages, unpacked into bin/slapd, unless it is installed.
	@tools/slapd/build.sh

.PHONY: kafka
kafka: ## Provide Apache Kafka for make e2e-hub: jars of Maven Central, into bin/kafka. It needs Java 17 and Maven.
	@tools/kafka/install.sh

.PHONY: ocm
ocm: ## Compile programs of Open Cluster Management for make e2e-hub: minutes once, then an instant.
	@tools/ocm/build.sh

.PHONY: node
node: ## Provide kubelet, containerd and what else a node needs for make e2e-node: minutes once, then an instant. It needs Linux.
	@tools/node/build.sh

.PHONY: operators
operators: ## Compile old and new releases of operators of other projects for make e2e-operators: half an hour once, then seconds.
	@tools/operators/build.sh

##@ Change

.PHONY: test-fast
test-fast: ## Run the tests that need no server, without the race detector: the inner loop.
	@packages=$$($(imports) work | $(quick)) && go test $(TEST_FLAGS) $$packages

# The heaps of tests are small: with fewer garbage collections, test binaries use a fifth less CPU time.
test race soak: export GOGC := 400

.PHONY: test
test: controlplane slapd build ## Test everything, with the race detector where goroutines of ours meet and there is a C compiler.
	@[[ "$(RACE)" == *-race ]] || echo "test: no C compiler, so without the race detector"
	@echo "test: module 1 and externalname/crossplane alone, at their floors"
	@GOWORK=off go test $(UNITS) ./...
	@GOWORK=off go -C externalname/crossplane test $(UNITS) ./...
	@echo "test: the program of make release"
	@GOWORK=off go -C tools/release test $(UNITS) ./...
	@echo "test: the workspace, without a control plane"
	@all=$$($(imports) work | $(quick)) && raced=$$($(raced)) && \
		$(RACE) $(UNITS) $$(grep -Fxf <(echo "$$raced") <<<"$$all") && go test $(UNITS) $$(grep -vFxf <(echo "$$raced") <<<"$$all")
	@echo "test: helm, which renders the chart (compiled first, if it is not yet)"
	@GOWORK=off go tool -modfile=tools/helm/go.mod -n helm >/dev/null
	@echo "test: the workspace, against real control planes"
	@$(MAKE) --no-print-directory -k -j2 RACE="$(RACE)" test-raced-servers test-servers test-unraced-servers

# The parts of the tests with servers run two at a time, because tests wait more than they compute.
.PHONY: test-raced-servers test-servers test-unraced-servers
test-raced-servers:
	@$(RACE) -run '$(names)' $(SERVERS) $(RACED_SERVERS:%=./%)

test-servers:
	@packages=$$($(imports) work | $(slow) | grep -vFxf <(go list $(RACED_SERVERS:%=./%))) && go test $(SERVERS) $(LONGEST) $$packages

test-unraced-servers:
	@go test -skip '$(names)' $(SERVERS) $(RACED_SERVERS:%=./%)

.PHONY: test-times
test-times: ## Run make test, and print the 20 packages and the 20 tests that took longest.
	@mkdir -p bin && gotestsum=$$(GOWORK=off go tool -modfile=tools/go.mod -n gotestsum) && code=0 && \
		$$gotestsum --format=standard-quiet --hide-summary=skipped --ignore-non-json-output-lines --jsonfile-timing-events=bin/test-times.json \
			--raw-command -- $(MAKE) --no-print-directory RACE="$(RACE)" test TEST_FLAGS="-json $(TEST_FLAGS)" | tee bin/test-times.txt || code=$$?; \
		printf '\nThe packages that took longest:\n'; { grep -P '^(ok  |FAIL)\t.*s$$' bin/test-times.txt || true; } | sort -t $$'\t' -k 3,3 -rn | awk 'NR <= 20'; \
		printf '\nThe tests that took longest:\n'; $$gotestsum tool slowest --num=20 --jsonfile=bin/test-times.json; exit $$code

.PHONY: race
race: controlplane slapd build ## Test with the race detector all tests of the packages of which make test runs some with it.
	@$(RACE) $(SERVERS) $(RACED_SERVERS:%=./%)

.PHONY: soak
soak: controlplane ## Test outages of two minutes. make test has each outage with half a minute.
	@GODWIT_SOAK=1 $(RACE) $(SERVERS) -v -run '^Test(APIServer|Etcd)Away$$' ./cmd/internal/operator

.PHONY: property
property: controlplane ## Play random interleavings of users, editors, killed runs and a lagging API server for FOR=30m, some of them with the default settle time, and read from etcd that nothing is lost. make test plays a minute, with short settle times.
	@go test -count=1 -timeout 0 -v ./test/property -property.for=$(or $(FOR),30m) $(if $(SEED),-property.seed=$(SEED),-property.seed=$$(date +%s))

.PHONY: conformance
conformance: controlplane slapd ## Prove two providers that run as processes: examples/provider-ldap, and provider-kubernetes v0.17.1, which is compiled first. Prove that each check finds its planted bug, and no other.
	@GODWIT_CONFORMANCE=1 go test $(SERVERS) -v -run '^(TestProcess|TestConformanceFindsBugs)' ./test/externalname

.PHONY: e2e-crossplane
e2e-crossplane: controlplane ## Move managed resources from provider-kubernetes v0.17.1 to v1.2.1, its release for Crossplane v2, by the commands of the guide. The first time it compiles both: minutes.
	@GODWIT_E2E_CROSSPLANE=1 go test $(SERVERS) -v -run '^TestMoveToCrossplaneV2$$' ./cmd/internal/guide

# Not in make test and make lint: an empty build cache takes minutes for Terraform's plugin SDK.
.PHONY: upjet
upjet: controlplane slapd ## Generate, lint and test examples/provider-upjet, and prove it as a process. The first time it compiles Terraform's plugin SDK: minutes.
	@echo "upjet: what Upjet generates is current"
	@examples/provider-upjet/generate.sh check
	@echo "upjet: golangci-lint, and tests with Upjet's own connector"
	@lint=$$(GOWORK=off go tool -modfile=tools/go.mod -n golangci-lint) && cd examples/provider-upjet && \
		GOWORK=off $$lint run -c ../../.golangci.yml $(LINT_FLAGS) ./... && GOWORK=off go test $(UNITS) ./...
	@echo "upjet: the provider as a process"
	@GODWIT_UPJET=1 go test $(SERVERS) -v -run '^TestUpjet' ./test/externalname

.PHONY: matrix
matrix: controlplane build ## Test with Kubernetes 1.31 to 1.37, one after the other, and write docs/reference/versions.md. The first time it compiles each: minutes. VERSIONS="1.33 1.34" selects.
	@go run ./test/matrix -versions "$(VERSIONS)"

.PHONY: e2e-hub
e2e-hub: controlplane ocm kafka ## Test with Apache Kafka, and with hubs and clusters of Open Cluster Management that run as processes.
	@GODWIT_E2E_HUB=1 go test $(SERVERS) -timeout 60m -v ./test/hub/e2e

# The source is not a Go module that others may require, so it is built where the user has it.
.PHONY: e2e-hub-import
e2e-hub-import: controlplane ocm ## Test moves beside the original import controller, klusterlet operator and agents. IMPORT_CONTROLLER=FOLDER has the controller's source.
	@test -n "$(IMPORT_CONTROLLER)" || { echo "e2e-hub-import: IMPORT_CONTROLLER is not set: give the folder of a clone of managedcluster-import-controller"; exit 1; }
	@tools/ocm/operator.sh
	@tools/ocm/import-controller.sh "$(IMPORT_CONTROLLER)"
	@GODWIT_E2E_HUB=1 IMPORT_CONTROLLER="$(abspath $(IMPORT_CONTROLLER))" go test $(SERVERS) -timeout 30m -v -run '^TestOriginal' ./test/hub/e2e

.PHONY: e2e-hub-plain
e2e-hub-plain: controlplane ocm kafka ## Test moves between hubs of Open Cluster Management without an import controller: its controllers, klusterlet operators and agents, as processes.
	@tools/ocm/operator.sh
	@GODWIT_E2E_HUB=1 GODWIT_E2E_HUB_PLAIN=1 go test $(SERVERS) -timeout 40m -v -run '^TestPlain' ./test/hub/e2e

# Not in make e2e-hub-plain: it needs root on Linux, and the build of three more programs.
.PHONY: e2e-hub-pods
e2e-hub-pods: controlplane node ## Test moves between hubs of Open Cluster Management of which no part is simulated: five clusters with nodes, whose operators, controllers and agents are pods. It needs root on Linux.
	@tools/ocm/pods.sh
	@GODWIT_E2E_HUB_PODS=1 go test $(SERVERS) -timeout 90m -v ./test/hub/pods

# What needs no hub takes two minutes. The rest takes longer than .ci/run has left: the build of Open Cluster Management
# alone takes a quarter of an hour.
.PHONY: e2e-hub-short
e2e-hub-short: kafka ## Test the part of make e2e-hub that needs no hub: with Apache Kafka.
	@GODWIT_E2E_HUB=1 go test $(SERVERS) -v -run '^Test(Broker|BrokerRefuses|SecuredBroker|Tripwire|Leaks|Differences)$$' ./test/hub/e2e

# One package after the other, since each prepares images in bin.
.PHONY: e2e-node
e2e-node: controlplane node prometheus ## Test on a real node, with kubelet and containerd, what a release ships: image, chart, hook Job and alerts. It needs root on Linux.
	@GODWIT_E2E_NODE=1 go test $(SERVERS) -p 1 -v ./test/node/...

# The rest takes longer than .ci/run has left.
.PHONY: e2e-node-short
e2e-node-short: controlplane node ## Test the part of make e2e-node that installs a release, migrates by it and uninstalls it, and that a killed test leaves nothing.
	@GODWIT_E2E_NODE=short go test $(SERVERS) -p 1 -v -run '^Test(Install|Killed)$$' ./test/node/...

# Not in make e2e-node: an empty build cache takes half an hour for the programs of all releases.
.PHONY: e2e-operators
e2e-operators: controlplane node operators ## Upgrade operators of other projects on a real node, with Godwit in between, and write docs/reference/operators.md. It needs root on Linux.
	@GODWIT_E2E_OPERATORS=all go test $(SERVERS) -timeout 90m -v ./test/node/operators

.PHONY: test-html
test-html: ## Open the HTML reports in headless Chromium: search, keyboard, light and dark, axe-core. SCREENSHOTS=DIR keeps pictures.
	@GODWIT_REPORTS=$(CURDIR)/bin/reports go test -count=1 -vet=off $(TEST_FLAGS) ./cmd/internal/browser
	@GODWIT_REPORTS=$(CURDIR)/bin/reports SCREENSHOTS="$(abspath $(SCREENSHOTS))" tools/browser/test.sh reports

.PHONY: prometheus
prometheus: ## Compile prometheus and promtool for make test-monitoring and make e2e-node: minutes once, then an instant.
	@tools/prometheus/build.sh

# Not in make test: an empty build cache takes minutes for Prometheus.
.PHONY: test-monitoring
test-monitoring: controlplane prometheus ## Test the alerts with promtool, and alerts and dashboard with a Prometheus that scrapes each feature while it works.
	@GODWIT_TEST_MONITORING=1 go test $(SERVERS) -v -run '^Test(PromtoolRules|Prometheus)$$' ./cmd/internal/chart

# Tests read the version that is called main.
.PHONY: test-docs
test-docs: ## Build the documentation and open it in headless Chromium: search, keyboard, versions, light and dark, axe-core. SCREENSHOTS=DIR keeps pictures.
	@tools/docs/build.sh main
	@SCREENSHOTS="$(abspath $(SCREENSHOTS))" tools/browser/test.sh site

.PHONY: lint
lint: ## Lint every module of the workspace; LINT_FLAGS=--fix fixes what it can.
	@echo "lint: golangci-lint on every module of the workspace, and on tools/release (compiled first, if it is not yet)"
	@lint=$$(GOWORK=off go tool -modfile=tools/go.mod -n golangci-lint) && modules=$$(go list -m -f '{{.Dir}}/...') && \
		$$lint run $(LINT_FLAGS) $$modules && cd tools/release && GOWORK=off $$lint run -c ../../.golangci.yml $(LINT_FLAGS) ./...

.PHONY: words
words: ## Fail on words that are not standard here.
	@tools/words.sh

# TEST_FLAGS="-args -update" rewrites the rendered files.
.PHONY: chart
chart: ## Lint the chart, and compare the rendered manifests with the golden files.
	@echo "chart: helm lint and template (helm is compiled first, if it is not yet)"
	@go test -count=1 -run '^TestChart' ./cmd/internal/chart $(TEST_FLAGS)

.PHONY: generate
generate: ## Run every generator (go:generate) of the workspace.
	@echo "generate: every go:generate directive of the workspace"
	@go generate work

.PHONY: verify
verify: ## Check generated files, tidy modules, format, words, lint, the floors of what others embed and a clean tree.
	@tools/verify.sh

.PHONY: fuzz
fuzz: ## Fuzz every target for FUZZTIME=20s, also in modules of testdata.
	@grep -rHoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sed 's/func //' | while IFS=: read -r file target; do \
		echo "fuzz: $$target for $(FUZZTIME)"; \
		case $$file in */testdata/*) export GOWORK=off;; *) unset GOWORK;; esac; \
		go -C "$$(dirname "$$file")" test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) . </dev/null || exit 1; \
	done

.PHONY: docs
docs: ## Build the documentation as a site, bin/site/VERSION, without references to other hosts; VERSION is main, or a release such as v0.1.0.
	@tools/docs/build.sh $(or $(VERSION),main)

.PHONY: recording
recording: controlplane build ## Record make demo on a terminal, and write docs/assets/demo.cast and the demo.svg of the README.
	@MAKEFLAGS=--no-print-directory go run ./test/docs/recording make demo

##@ Measure

.PHONY: bench
bench: ## Run the micro-benchmarks of module 1.
	@go test -run '^$$' -bench . -benchmem ./...

.PHONY: bench-crd
bench-crd: controlplane build ## Measure `godwit crd run` against the API server's ceiling with N=3000 objects.
	@go -C bench run ./crd -n $(N)

# Sizes for these are given on the command line, because the defaults above are those of other targets.
given = $(if $(filter command line environment,$(origin $(1))),$($(1)),$(2))

.PHONY: bench-peers
bench-peers: controlplane build ## Compare `godwit crd run` with each other migrator: N=3000 objects, ROUNDS=3, and three faults. BENCH_FLAGS="-for 10m" measures a part, which the same command continues.
	@go -C bench run ./peers -n $(N) -rounds $(call given,ROUNDS,3) $(BENCH_FLAGS)

.PHONY: bench-scale
bench-scale: controlplane build ## Migrate N=100000 objects that are copied in etcd, kill the run halfway and resume it. N=1000000 works, too.
	@go -C bench run ./scale -n $(call given,N,100000) $(BENCH_FLAGS)

.PHONY: bench-plots
bench-plots: ## Draw the results of `make bench-peers` and `make bench-scale` into docs/assets, and write docs/explanation/benchmarks.md.
	@go -C bench run ./plot

.PHONY: bench-manager
bench-manager: controlplane build ## Measure `godwit manager`: CRDS=50 with OBJECTS=1000 each, a second client in ROUNDS=5 of WINDOW=30s, IDLE=10m over IDLE_CRDS=200.
	@go -C bench run ./manager -crds $(CRDS) -objects $(OBJECTS) -idle $(IDLE) -idle-crds $(IDLE_CRDS) -rounds $(ROUNDS) -window $(WINDOW)

.PHONY: bench-revision
bench-revision: controlplane build ## Measure `godwit revision run` against the API server's ceiling with VMS=1000, and its memory with ten times as many. PLAN=100000 also plans that many.
	@go -C bench run ./revision -n $(VMS) -plan $(PLAN)

.PHONY: bench-externalname
bench-externalname: controlplane build ## Measure codecs, the adapter against crossplane-runtime alone, and `godwit externalname run` over FLEET=10000 managed resources.
	@go -C bench run ./externalname -fleet $(FLEET)

.PHONY: bench-plan
bench-plan: controlplane build ## Measure `godwit plan` over CRDS=300 CRDs in CONTEXTS=4 contexts.
	@go -C bench run ./plan -crds $(if $(filter command line environment,$(origin CRDS)),$(CRDS),300) -contexts $(CONTEXTS)

.PHONY: bench-hub
bench-hub: controlplane ocm kafka build ## Measure how CLUSTERS=300 managed clusters move between two hubs, against a bare switch of as many.
	@go -C bench run ./hub -clusters $(CLUSTERS)

##@ Release

# go run would add a line to the one of an error.
release = GOWORK=off go -C tools/release build -o ../../bin/release . && bin/release

.PHONY: release
release: ## Make all that VERSION=v0.1.0 has, in dist/v0.1.0, from the current commit. It publishes nothing, and needs no network once modules are downloaded.
	@$(release) make -platforms="$(PLATFORMS)" -- "$(VERSION)"

.PHONY: release-sign
release-sign: ## Sign the release in dist with KEY=cosign.key: its checksums, and its provenance. It asks no service.
	@$(release) sign -key="$(KEY)" -- "$(VERSION)"

.PHONY: release-check
release-check: ## Use the release in dist as its users do: checksums, signatures, a second run, go install, go get, archives, krew, image, chart.
	@$(release) check -platforms="$(PLATFORMS)" -- "$(VERSION)"

##@ Leave

.PHONY: clean
clean: ## Remove built and measured files, with the control plane.
	@echo "clean: bin, bench/out, dist, test/browser/node_modules and the demo's kubeconfig"
	@rm -rf bin bench/out dist test/browser/node_modules godwit-demo.kubeconfig
