# The same commands that .ci/run uses. No target needs more than Go and the network.

GOLANGCI    = github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK = golang.org/x/vuln/cmd/govulncheck@v1.8.0
FUZZTIME    = 20s
GOTEST      = go test
# Without gRPC the client of Google's storage is 143 packages smaller; we use its JSON API.
# With -trimpath a copy of the sources elsewhere, as the README's test makes one, compiles nothing again.
export GOFLAGS := $(strip $(GOFLAGS) -tags=disable_grpc_modules -trimpath)
GORELEASER  = github.com/goreleaser/goreleaser/v2@v2.16.0
CYCLONEDX   = github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
TOOLS       = $(CURDIR)/dist/tools
RELEASER    = GOFLAGS= PATH="$(TOOLS):$$PATH" goreleaser
PACKAGES    = ./...

# Packages with concurrent code; those that take longest come first.
CONCURRENT = ./transforms/catalog ./transforms/docs ./server/... ./transforms/seed ./transforms/news/... ./transforms/lane ./transforms/parse/budget ./io/web ./io/web/polite ./io/lease ./io/ledger/... ./io/store ./io/db/... ./cmd/search/... ./io/kept

UNWATCHED  = modernc.org/sqlite/lib modernc.org/libc

# Tests of those packages that take the race detector longest, and whose steps come one after another.
EMPTY       =
SPACE       = $(EMPTY) $(EMPTY)
UNRACED     = $(subst $(SPACE),|,$(strip \
  Year HostilePages BackoffTable Delay Redirects MigrateFromOlder KilledListIsResumed PurgeOlderKilledAnywhere \
  PurgeKilledAnywhere CompactKilledAnywhere KilledAnywhere PackedStoreCalls Field Scope NoLLMs BelowHTTP \
  LayoutBreakErasesNothing GoodRowStays ExportedDomains Sitemap GoneProducts Index MaxPages DescriptionPlacesAllowed \
  SideOrigins ProductThatIsNoLongerListed Context7 ListThatHidesProducts DescriptionNamed SeedHasTwoNames GitHubLongFile \
  CollidingPagesWithoutAField Walls RefusedSources SameTextAfterAKill FrontierIsBounded DeadLettersEnd RowsWithOneLink \
  RemovalAfterAKill Nights LateAndMissing ResumeOverManyLanes ResumeListsMarks CertificatesOutage DelayedMarkResolvesItsDeadLetter \
  NewDateSaysThatASiteIsNotOpen DismissAndReplayFound AlertsBySelection AlertsOfSchedules AnswersAreAsDescribed Bodies Summaries \
  StartedBy AlertOnceAndOver ProviderPages PageThatShowsAnotherProduct Details RemovedProductsAtTheHead ListThatCannotBeRead \
  MissingValueStaysAndChangesAreKept KeysThatCollide RenderedTooLarge RefusedMidway HandOffAgain Limit Removal NoSeedAnswers \
  EveryPublisherTwice BlockedForAWeek CanonicalOfAnotherArticle HalfOfASitemapOfAnIndex Discover WarningsAreBounded \
  PasswordIsNeverInAnError CopiesInAnyOrder PurposeOverSites Purpose))

# Tests write and sync thousands of small files. On a disk that takes half of their
# time and disturbs tests that measure time. So test and race keep the tests' files
# in memory, if /dev/shm has 4 GB free and can run programs. The files that go builds
# stay on the disk.
MEMORY = $(shell f=$$(mktemp /dev/shm/XXXXXX 2>/dev/null) && [ "$$(df -Pk /dev/shm | awk 'NR == 2 {print $$4}')" -gt 4000000 ] && \
  echo exit >$$f && chmod +x $$f && sh -c $$f 2>/dev/null && echo /dev/shm; rm -f "$$f")
test race unraced scale: export GOTMPDIR := $(or $(GOTMPDIR),$(TMPDIR),/tmp)
test race unraced scale: export TMPDIR := $(or $(MEMORY),$(TMPDIR),/tmp)

.PHONY: run test race raced unraced e2e bench bench-extraction bench-safety scale nightly fuzz lint vet vuln golden release publish tools release-twice

run: ## the seed job on the sample bucket, against the simulated web
	go run ./cmd/pipeline --runner=direct --web=demo

test: ## everything that needs no other process: about two minutes
	@# Four packages at a time: their tests wait for real servers more than they compute.
	$(GOTEST) -p 4 $(PACKAGES)

race: ## the packages with concurrent code, under the race detector
	@# SQLite's C, translated to Go, works on memory that is not Go's: the race detector
	@# ignores every access of it, at the cost of 4 tenths of the processor time of these tests.
	$(GOTEST) -race $(UNWATCHED:%=-gcflags=%=-race=false) -p 4 -timeout 30m -skip '^Test($(UNRACED))$$' $(CONCURRENT)

raced: # the packages that race tests, one a line
	@go list $(CONCURRENT)

unraced: ## the tests in those packages that race leaves out, and those whose files it cannot build
	@more=$$(grep -rl --include='*_test.go' '^//go:build.*!race' . | xargs sed -n 's/^func Test\([A-Za-z0-9]*\).*/\1/p' | paste -sd '|'); \
	$(GOTEST) -p 4 -run "^Test($(UNRACED)|$$more)\$$" $(CONCURRENT)

e2e: ## the slow real parts too: whole runs, kills, and the README's own commands
	@# The longest one first; three at a time, because they wait for servers more than they compute.
	@# The tests that wait longest run at the end of their package, four at a time.
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; go build -o "$$dir/" ./cmd/... && \
	E2E_PROGRAMS=$$dir $(GOTEST) -count=1 -p 3 -parallel 4 -tags=e2e,disable_grpc_modules -timeout 40m ./pipeline/e2etest/flink ./pipeline/e2etest/...

bench: ## benchmarks only
	go test -run '^$$' -bench . -benchmem -timeout 30m ./...

TRAFILATURA = $(CURDIR)/dist/trafilatura/bin/python
bench-extraction: ## how well articles are read: body, day, title and authors by source and type of page, the worst ten pages; and those of trafilatura, where pip finds it
	-test -x $(TRAFILATURA) || { python3 -m venv dist/trafilatura && $(TRAFILATURA) -m pip install -q trafilatura==2.3.1 lxml_html_clean; }
	TRAFILATURA_PYTHON=`$(TRAFILATURA) -c 'import trafilatura, sys; print(sys.executable)'` go test -count=1 -v -run 'TestCases|TestKoreanCases' ./transforms/parse/article

bench-safety: ## which rules of politeness ours and four other crawlers break, by a simulated web's own log: 15 minutes; needs PyPI and Java. See docs/politeness.md
	$(GOTEST) -tags=e2e,nightly,disable_grpc_modules ./pipeline/e2etest/safety -count=1 -v -timeout 40m
	$(GOTEST) -tags=e2e,nightly,disable_grpc_modules ./pipeline/e2etest/flink -run 'TestSafety$$' -count=1 -v -timeout 20m

search-quality: ## how well 100 questions on two manuals are answered, by words, by vectors and by both: 15 minutes
	$(GOTEST) -tags=e2e,disable_grpc_modules ./pipeline/e2etest/search -run 'TestQuality$$' -count=1 -v -timeout 2h -args -meaning

# Hours on two cores.
SCALE = mixed/objects=10000,mixed/table=10000,mixed/table=100000,dead/table=1000000,mixed/table=1000000
scale: ## what runs of SCALE hosts cost, in a table; see docs/scale.md
	$(GOTEST) -tags=e2e,disable_grpc_modules ./pipeline/e2etest -run 'TestScale$$' -count=1 -v -timeout 24h -scale=$(SCALE)

nightly: ## what takes hours: every form of the tests with real parts, ten million dead names, a million mixed ones on prism, long fuzzing, the search's quality, the docs job's whole field, and two cold builds of a release
	$(GOTEST) ./transforms/docs -run 'TestField$$' -count=1 -v -args -field
	$(GOTEST) -tags=e2e,nightly,disable_grpc_modules -timeout 2h ./pipeline/e2etest/...
	$(MAKE) search-quality
	$(MAKE) scale SCALE=dead/table=10000000,mixed/table/prism=1000000
	$(MAKE) fuzz FUZZTIME=5m
	$(MAKE) release-twice

fuzz: ## FUZZTIME for each fuzz target; of it at most ten tries to shorten one input, not the default minute
	@grep -r --include='*_test.go' -o '^func Fuzz[A-Za-z0-9_]*' . | sort | while IFS=: read -r file func; do \
	  name=$${func#func }; echo "$$name in $$(dirname "$$file")"; \
	  go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime=10x "$$(dirname "$$file")" </dev/null || exit 1; \
	done

vet: ## go vet and staticcheck: quicker to build than all linters
	go vet -tags=e2e,nightly,disable_grpc_modules ./...
	go run $(STATICCHECK) -checks inherit,-ST1013 -tags=e2e,nightly,disable_grpc_modules ./...

lint: ## all linters of .golangci.yml; building them takes minutes, once
	go run $(GOLANGCI) run ./...

vuln: ## known vulnerabilities in the linked modules, if their database can be reached
	@out=$$(go run $(GOVULNCHECK) ./cmd/... 2>&1); code=$$?; printf '%s\n' "$$out"; \
	if [ $$code -ne 0 ] && printf '%s\n' "$$out" | grep -q '^govulncheck: fetching vulnerabilities:'; then \
	  echo 'NOT CHECKED: the database of vulnerabilities cannot be reached from here'; exit 0; fi; exit $$code

golden: ## write the expected outputs again; read the diff before committing it
	go test ./pipeline/cli -count=1 -run 'TestFlagsPage|TestConfigSchema|TestJobsOfTheServer' -update-flags
	@grep -rl --include='*_test.go' 'flag.Bool("update"' . | xargs -n1 dirname | sort -u | while read -r dir; do \
	  go test "$$dir" -count=1 -update </dev/null || exit 1; \
	done

release: tools ## archives, packages, checksums and bills of materials of .goreleaser.yaml, in dist/; publishes nothing
	@test -z "$$(git status --porcelain)" || { echo 'commit first: a release has the version of its commit' >&2; exit 1; }
	$(RELEASER) check
	$(RELEASER) release --snapshot --clean

publish: tools ## the same as a draft on GitHub, for the tag of this commit: see CONTRIBUTING.md
	$(RELEASER) release --clean

tools:
	GOFLAGS= GOBIN=$(TOOLS) go install $(GORELEASER)
	GOFLAGS= GOBIN=$(TOOLS) go install $(CYCLONEDX)

release-twice: tools ## make the release in two clones with separate build caches, and compare the bytes
	@set -e; dir=$$(mktemp -d); trap 'chmod -R u+w '$$dir'; rm -rf '$$dir EXIT; \
	for clone in one two; do \
	  git clone -q . $$dir/$$clone; \
	  GOCACHE=$$dir/cache-$$clone $(MAKE) -s -o tools -C $$dir/$$clone release TOOLS=$(TOOLS); \
	done; \
	cmp $$dir/one/dist/all/SHA256SUMS $$dir/two/dist/all/SHA256SUMS; echo 'the same bytes twice'
