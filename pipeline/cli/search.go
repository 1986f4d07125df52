package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/embed"
	"github.com/newsfork/seed-engine/io/index"
	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/printable"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/launch"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/docs"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/parse/similar"
)

const searchUsage = `pipeline embed [--embed-url=URL --embed-model=NAME] [--policies=DIR]
                                  reads what the docs job handed over into the search index of its
                                  database: new and changed chunks, deletions
pipeline search QUESTION [--embed-url=URL --embed-model=NAME] [--provider=ID] [--limit=N] [--json]
                                  the chunks that answer it best, by words and by vectors; the question
                                  can also be --question=TEXT
pipeline mcp [--embed-url=URL --embed-model=NAME]
                                  serves search, changes since a time, and why a page has its state to
                                  language models, by the Model Context Protocol on standard input and output
  --embed-url=URL     an OpenAI-compatible endpoint without /embeddings, such as
                      https://api.openai.com/v1; its key is in ` + embed.KeyVariable + `; without it the search is
                      by words alone
  --embed-model=NAME  the endpoint's model, such as text-embedding-3-small
  --policies=DIR      the policies of the providers, which say tos: allowed (default: those shipped
                      with the program); of other pages the index keeps 200 characters
  --db=DSN            the docs job's database
`

// searchFlags are the flags of embed, search and mcp.
type searchFlags struct {
	url, model, policies, provider, question string
	limit                                    int
	json                                     bool
}

func (e *searchFlags) define(f *flag.FlagSet, verb string) {
	f.StringVar(&e.url, "embed-url", os.Getenv(embed.URLVariable), "")
	f.StringVar(&e.model, "embed-model", os.Getenv(embed.ModelVariable), "")
	switch verb {
	case "embed":
		f.StringVar(&e.policies, "policies", "", "")
		return
	case "mcp":
		return
	}
	f.StringVar(&e.provider, "provider", "", "")
	f.StringVar(&e.question, "question", "", "")
	f.IntVar(&e.limit, "limit", 5, "")
	f.BoolVar(&e.json, "json", false, "")
}

// client is the endpoint; nil when there is none.
func (e *searchFlags) client() (*embed.Client, error) {
	if e.url == "" && e.model == "" {
		return nil, nil
	}
	c, err := embed.New(e.url, e.model, os.Getenv(embed.KeyVariable))
	if err != nil {
		return nil, usage.Errorf("--embed-url and --embed-model: %w", err)
	}
	return c, nil
}

// searchCommand is `pipeline embed`, `pipeline search` and `pipeline mcp`.
func searchCommand(ctx context.Context, verb string, args []string, stdout, stderr io.Writer) (err error) {
	var e searchFlags
	f := flag.NewFlagSet(verb, flag.ContinueOnError)
	e.define(f, verb)
	o, w, err := controlOptions(f, args, "db")
	if err != nil {
		return err
	}
	question := strings.TrimSpace(strings.Join(append(w, e.question), " "))
	switch {
	case verb != "search" && question != "":
		return usage.Errorf("%s takes nothing but flags, not %q; see `help %s`", verb, question, verb)
	case verb == "search" && (question == "" || utf8.RuneCountInString(question) > maxQuestion):
		return usage.Errorf("search: write a question of at most %d letters; see `help search`", maxQuestion)
	case verb == "search" && (e.limit < 1 || e.limit > maxFound):
		return usage.Errorf("--limit=%d: use 1 to %d", e.limit, maxFound)
	}
	c, err := e.client()
	if err != nil {
		return err
	}
	within, stop := signal.NotifyContext(ctx, launch.Endings()...)
	defer stop()
	o.Job = docs.Job
	if err := o.placeDB(); err != nil {
		return err
	}
	if file, missing := db.Missing(o.DB); missing {
		return usage.Errorf("there is no database %s; run --job=docs first, or name another one with --db", file)
	}
	d, err := db.Open(within, o.DB)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	model := ""
	if c != nil {
		model = c.Model()
	}
	x, err := index.Open(within, d, model)
	if err != nil {
		return err
	}
	switch verb {
	case "mcp":
		return serveMCP(within, d, x.Keep(), c)
	case "search":
		return e.search(within, x, c, question, stdout, stderr)
	}
	return e.embed(within, x, c, o, stdout, stderr)
}

func (e *searchFlags) embed(ctx context.Context, x index.Index, c *embed.Client, o Options, stdout, stderr io.Writer) error {
	s, err := launch.OpenStore(ctx, &o.Options, stderr)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }() // it is only read from
	loaded, err := pipeline.ProviderPolicies(ctx, s, e.policies)
	if err != nil {
		return err
	}
	whole := map[string]bool{}
	for _, p := range loaded {
		whole[p.ProviderID] = p.Terms == policy.Allowed
	}
	done, err := pipeline.Embed(ctx, s, x, c, whole, lane.Logger(o.LogFormat, o.Level()), time.Now)
	var inUse *lease.InUseError
	if errors.As(err, &inUse) {
		return usage.Errorf("another `pipeline embed` is at work on this database: %w", err)
	}
	if _, werr := fmt.Fprintf(stdout, "indexed %d hand-offs: %d chunks put, %d deleted, %d vectors made\n", done.HandOvers, done.Put, done.Deleted, done.Vectors); err == nil {
		err = werr
	}
	if err != nil {
		return err
	}
	if done.Lost > 0 {
		_, err = fmt.Fprintf(stdout, "%d objects of the hand-off are not there any more; if no purge removed them, `--job=docs --handoff-again` hands everything over again\n", done.Lost)
	}
	chunks, lack, serr := x.Size(ctx)
	if err == nil && serr == nil && x.Model != "" && lack > 0 {
		_, err = fmt.Fprintf(stdout, "%d of %d chunks have no vector of %s and are found by words alone; `--job=docs --handoff-again` hands everything over again\n", lack, chunks, x.Model)
	}
	return errors.Join(err, serr)
}

const (
	maxQuestion = 1000
	maxFound    = 50
)

func (e *searchFlags) search(ctx context.Context, x index.Index, c *embed.Client, question string, stdout, stderr io.Writer) error {
	found, err := x.Ask(ctx, c, index.Query{Text: question, Provider: e.provider, Limit: e.limit})
	if err != nil {
		return err
	}
	if found.Failure != nil {
		if _, err := fmt.Fprintf(stderr, "pipeline: by words alone: %s\n", printable.Line(ledger.Redact(found.Failure.Error()))); err != nil {
			return err
		}
	}
	if len(found.Results) == 0 {
		if err := knownProvider(ctx, x.DB, e.provider); err != nil {
			return err
		}
	}
	if e.json {
		return json.NewEncoder(stdout).Encode(found)
	}
	if len(found.Results) == 0 {
		_, err := fmt.Fprintln(stdout, "nothing is found; `pipeline embed` reads what the docs job handed over into the search index")
		return err
	}
	for i, r := range found.Results {
		name := r.Context
		if name == "" {
			name = r.Title
		}
		if _, err := fmt.Fprintf(stdout, "%d. %s\n   %s\n   %s\n", i+1, printable.Line(name), printable.Line(r.URL), printable.Line(r.Excerpt)); err != nil {
			return err
		}
	}
	return nil
}

// knownProvider refuses a provider of which the database has nothing: for one that is misspelt,
// no result would look like an answer.
func knownProvider(ctx context.Context, d *db.DB, provider string) error {
	if provider == "" {
		return nil
	}
	known, err := docs.Providers(ctx, d)
	if err != nil || slices.Contains(known, provider) {
		return err
	}
	return usage.Errorf("there is nothing of a provider %.100q; the most similar of %d are: %s", provider, len(known), strings.Join(similar.Names(provider, known, 20), ", "))
}
