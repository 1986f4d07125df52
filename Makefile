# The same commands that .ci/run uses. No target needs more than Go and the network.

GOLANGCI    = github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME    = 20s

# Packages where goroutines meet.
CONCURRENT = ./transforms/lane/... ./transforms/seed/... ./transforms/catalog/... ./io/web ./io/ledger/... ./io/store ./io/db/... ./pipeline/orchestrator/...

.PHONY: run test race e2e bench fuzz lint vet golden

run: ## the seed job on the sample bucket, against the simulated web
	go run ./cmd/pipeline --runner=direct --web=demo

test: ## everything that needs no other process: about two minutes
	go vet ./...
	go test ./...

race: ## the packages where goroutines meet, under the race detector
	go test -race $(CONCURRENT)

e2e: ## the slow real parts too: whole runs, kills, and the README's own commands
	@# The longest first, so that the rest fills the other processor.
	go test -tags e2e -timeout 25m ./pipeline/e2etest/flink ./pipeline/e2etest/...

bench: ## benchmarks only
	go test -run '^$$' -bench . -benchmem -timeout 30m ./...
	go test -tags e2e -run '^$$' -bench . -timeout 30m ./pipeline/e2etest/flink

fuzz: ## FUZZTIME for each fuzz target; of it at most 1 s to shorten one input, not the default minute
	@grep -r --include='*_test.go' -o '^func Fuzz[A-Za-z0-9_]*' . | sort | while IFS=: read -r file func; do \
	  name=$${func#func }; echo "$$name in $$(dirname "$$file")"; \
	  go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime=1s "$$(dirname "$$file")" </dev/null || exit 1; \
	done

vet: ## what .ci/run checks: quick to build
	go vet -tags e2e ./...
	go run $(STATICCHECK) -checks inherit,-ST1013 -tags e2e ./...

lint: ## all linters of .golangci.yml; building them takes minutes, once
	go run $(GOLANGCI) run ./...

golden: ## write the expected outputs anew; read the diff before committing it
	go test ./pipeline -count=1 -run TestReadmeFlags -update-readme
	@grep -rl --include='*_test.go' 'flag.Bool("update"' . | xargs -n1 dirname | sort -u | while read -r dir; do \
	  go test "$$dir" -count=1 -update </dev/null || exit 1; \
	done
