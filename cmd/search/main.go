// Command search makes the documentation that the docs job crawled searchable: it indexes what the job handed over, and answers
// questions on the command line, by HTTP, and by the Model Context Protocol. See docs/docs-job.md.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/newsfork/seed-engine/cmd/search/embed"
	"github.com/newsfork/seed-engine/cmd/search/index"
	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/lease"
	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/printable"
	"github.com/newsfork/seed-engine/io/store"
	_ "github.com/newsfork/seed-engine/io/store/bucket" // s3://, r2:// and gs://
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/parse/similar"
)

const help = `search embed [flags]            reads what the docs job handed over into the search index of its database:
                                new and changed chunks, deletions
search ask QUESTION [flags]     the chunks that answer it best, by words and by vectors
search serve [flags]            a page and an API that answer questions
search mcp [flags]              serves search, changes since a time, and why a page has its state to language
                                models, by the Model Context Protocol on standard input and output

Flags, each also as SEED_NAME in the environment (--embed-url: SEED_EMBED_URL):
`

// options are what can be set.
type options struct {
	*option.Set
	store, env, db, url, model, policies, provider, question, listen string
	limit                                                            int
	json                                                             bool
}

func newOptions() *options {
	o := &options{Set: option.New("search")}
	o.Text(&o.store, "store", "out", "the store of the docs job")
	o.Text(&o.env, "env", "", "dev, staging or prod: fills {env} in --store and --db").OneOf("dev", "staging", "prod")
	o.Text(&o.db, "db", "", "the docs job's database (default: the SQLite file next to a directory store)").Is(option.Secret)
	o.Text(&o.url, "embed-url", "", "an OpenAI-compatible endpoint without /embeddings, such as https://api.openai.com/v1; its key is in "+
		embed.KeyVariable+"; without it the search is by words alone")
	o.Text(&o.model, "embed-model", "", "the endpoint's model, such as text-embedding-3-small")
	o.Text(&o.policies, "policies", "", "embed: directory with the providers' policies, which say tos: allowed (default: the shipped ones); of other pages the index keeps 200 characters")
	o.Text(&o.question, "question", "", "ask: the question, in place of QUESTION")
	o.Text(&o.provider, "provider", "", "ask: only the documentation of this provider, by its id")
	o.Number(&o.limit, "limit", 5, "ask: number of results").Range(1, maxFound)
	o.Yes(&o.json, "json", false, "ask: print JSON")
	o.Text(&o.listen, "listen", "127.0.0.1:8788", "serve: host:port; beyond loopback it needs a token in "+tokenVariable)
	return o
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], printable.Writer(os.Stdout), os.Stderr)
	stop()
	os.Exit(code)
}

// run runs the program and returns its exit code: 1 after a failure, 2 for wrong usage.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o := newOptions()
	verb, err := o.read(args)
	if errors.Is(err, pflag.ErrHelp) {
		o.SetOutput(stdout)
		_, err = io.WriteString(stdout, help)
		o.PrintDefaults()
	} else if err == nil {
		err = o.do(ctx, verb, stdout, stderr)
	}
	if err == nil {
		return 0
	}
	_, _ = fmt.Fprintf(stderr, "search: %s\n", printable.Line(ledger.Redact(usage.OneLine(err)))) // there is no other place to say it
	if usage.Is(err) {
		return 2
	}
	return 1
}

// read reads the command line and the environment.
func (o *options) read(args []string) (verb string, err error) {
	if len(args) == 0 || args[0] == "help" {
		return "", pflag.ErrHelp
	}
	verb, args = args[0], args[1:]
	if err := o.Parse(args); errors.Is(err, pflag.ErrHelp) {
		return "", err
	} else if err != nil {
		return "", usage.Errorf("%w; see `search help`", err)
	}
	for name := range o.Given() {
		if u := o.Get(name).Usage; strings.HasPrefix(u, "ask: ") && verb != "ask" || strings.HasPrefix(u, "embed: ") && verb != "embed" || strings.HasPrefix(u, "serve: ") && verb != "serve" {
			return "", usage.Errorf("--%s is for search %s, not for search %s", name, strings.SplitN(u, ":", 2)[0], verb)
		}
	}
	given := o.Given()
	for _, p := range o.All {
		if v := os.Getenv(option.Variable(p.Name)); v != "" && !given[p.Name] {
			if err := o.Put(p.Name, v); err != nil {
				return "", usage.Errorf("%s: %w", option.Variable(p.Name), err)
			}
		}
	}
	o.question = strings.TrimSpace(strings.Join(append(o.Args(), o.question), " "))
	switch {
	case !slices.Contains([]string{"embed", "ask", "serve", "mcp"}, verb):
		return "", usage.Errorf("%q is no command; use embed, ask, serve or mcp, and see `search help`", verb)
	case verb == "ask" && (o.question == "" || utf8.RuneCountInString(o.question) > maxQuestion):
		return "", usage.Errorf("ask: write a question of at most %d letters", maxQuestion)
	case verb != "ask" && o.NArg() > 0:
		return "", usage.Errorf("%s takes nothing but flags, not %q; see `search help`", verb, o.Arg(0))
	}
	if err := o.Check(); err != nil {
		return "", err
	}
	return verb, o.place()
}

// place works out the store and the database.
func (o *options) place() error {
	for _, at := range []*string{&o.store, &o.db} {
		if strings.Contains(*at, "{env}") && o.env == "" {
			return usage.Errorf("{env} in --store or --db has no value; add --env=dev, staging or prod")
		}
		*at = strings.ReplaceAll(*at, "{env}", o.env)
	}
	if o.db != "" {
		return nil
	}
	dir := strings.TrimPrefix(o.store, "file://")
	if strings.Contains(dir, "://") {
		return usage.Errorf("add --db=sqlite:///path or --db=postgres://…, the database of the docs job")
	}
	abs, err := filepath.Abs(dir)
	o.db = "sqlite://" + filepath.ToSlash(abs) + ".db"
	return err
}

// do opens the index and does what the verb says.
func (o *options) do(ctx context.Context, verb string, stdout, stderr io.Writer) (err error) {
	var c *embed.Client // nil: by words alone
	model := ""
	if o.url != "" || o.model != "" {
		if c, err = embed.New(o.url, o.model, os.Getenv(embed.KeyVariable)); err != nil {
			return usage.Errorf("--embed-url and --embed-model: %w", err)
		}
		model = c.Model()
	}
	if file, missing := db.Missing(o.db); missing {
		return usage.Errorf("there is no database %s; run the docs job first, or name another one with --db", file)
	}
	d, err := db.Open(ctx, o.db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	x, err := index.Open(ctx, d, model)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(stderr, nil))
	switch verb {
	case "mcp":
		return serveMCP(ctx, x.Keep(), c)
	case "serve":
		return serve(ctx, o.listen, &searcher{x.Keep(), c, log, make(chan struct{}, maxSearches)}, stdout)
	case "ask":
		return o.ask(ctx, x, c, stdout, stderr)
	}
	return o.embed(ctx, x, c, log, stdout)
}

func (o *options) embed(ctx context.Context, x index.Index, c *embed.Client, log *slog.Logger, stdout io.Writer) error {
	s, err := store.Open(ctx, o.store)
	if err != nil {
		return usage.Errorf("--store: %w", err)
	}
	defer func() { _ = s.Close() }() // it is only read from
	allowed, err := wholeAllowed(ctx, s, o.policies)
	if err != nil {
		return err
	}
	done, err := fill(ctx, s, x, c, allowed, log, time.Now)
	var inUse *lease.InUseError
	if errors.As(err, &inUse) {
		return usage.Errorf("another `search embed` is at work on this database: %w", err)
	}
	if _, werr := fmt.Fprintf(stdout, "indexed %d hand-offs: %d chunks put, %d deleted, %d vectors made\n", done.HandOvers, done.Put, done.Deleted, done.Vectors); err == nil {
		err = werr
	}
	if err != nil {
		return err
	}
	if done.Lost > 0 {
		_, err = fmt.Fprintf(stdout, "%d objects of the hand-off are not there any more; if no purge removed them, the docs job's --handoff-again hands everything over again\n", done.Lost)
	}
	chunks, lack, serr := x.Size(ctx)
	if err == nil && serr == nil && x.Model != "" && lack > 0 {
		_, err = fmt.Fprintf(stdout, "%d of %d chunks have no vector of %s and are found by words alone; the docs job's --handoff-again hands everything over again\n", lack, chunks, x.Model)
	}
	return errors.Join(err, serr)
}

const (
	maxQuestion = 1000 // letters
	maxFound    = 50   // results
)

func (o *options) ask(ctx context.Context, x index.Index, c *embed.Client, stdout, stderr io.Writer) error {
	found, err := x.Ask(ctx, c, index.Query{Text: o.question, Provider: o.provider, Limit: o.limit})
	if err != nil {
		return err
	}
	if found.Failure != nil {
		if _, err := fmt.Fprintf(stderr, "search: by words alone: %s\n", printable.Line(ledger.Redact(found.Failure.Error()))); err != nil {
			return err
		}
	}
	if len(found.Results) == 0 {
		if err := knownProvider(ctx, x.DB, o.provider); err != nil {
			return err
		}
	}
	if o.json {
		return json.NewEncoder(stdout).Encode(found)
	}
	if len(found.Results) == 0 {
		_, err := fmt.Fprintln(stdout, "nothing is found; `search embed` reads what the docs job handed over into the search index")
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
	query := `SELECT provider FROM search_chunks`
	for _, of := range []string{"provider FROM docs_pages", "id FROM docs_providers"} {
		table := of[strings.LastIndexByte(of, ' ')+1:]
		if there, err := d.HasTable(ctx, table); err != nil {
			return err
		} else if there {
			query += ` UNION SELECT ` + of
		}
	}
	known, err := db.Texts(ctx, d, query+` ORDER BY 1`)
	if err != nil || slices.Contains(known, provider) {
		return err
	}
	return usage.Errorf("there is nothing of a provider %.100q; the most similar of %d are: %s", provider, len(known), strings.Join(similar.Names(provider, known, 20), ", "))
}
