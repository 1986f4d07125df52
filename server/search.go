package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/newsfork/seed-engine/io/embed"
	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/index"
	"github.com/newsfork/seed-engine/io/ledger"
)

const (
	// maxSearches are under way at a time.
	maxSearches = 4
	maxQuestion = 1000
	maxFound    = 50
	foundOnPage = 10
)

// question is what somebody searches for.
type question struct {
	Text, Provider string
	limit          int
}

func readQuestion(q url.Values) (question, error) {
	ask := question{Text: strings.TrimSpace(q.Get("q")), Provider: q.Get("provider"), limit: foundOnPage}
	if utf8.RuneCountInString(ask.Text) > maxQuestion {
		return ask, refuse("q: write at most %d letters", maxQuestion)
	}
	if ask.Provider != "" && !ledger.IsName(ask.Provider) {
		return ask, refuse("provider: that is not a provider's id")
	}
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxFound {
			return ask, refuse("limit: use 1 to %d", maxFound)
		}
		ask.limit = n
	}
	return ask, nil
}

var (
	errNoIndex    = conflict("there is no search index here, or its settings are wrong; run the docs job and `pipeline embed`. The server's log says more")
	errSearches   = &answerError{http.StatusServiceUnavailable, "too many searches are under way; try again"}
	errLongSearch = &answerError{http.StatusServiceUnavailable, fmt.Sprintf("the search took over %v; try again later", maxLook)}
)

// searcher asks the search index of the docs job, which is in the job's database.
type searcher struct {
	explorer *explorer
	client   *embed.Client // nil: by words alone
	log      *slog.Logger
	slots    chan struct{} // full while maxSearches are under way

	mu    sync.Mutex
	index *index.Index
}

// embedClient is the endpoint of the environment; nil if it names none.
func embedClient() (*embed.Client, error) {
	base, model := os.Getenv(embed.URLVariable), os.Getenv(embed.ModelVariable)
	if base == "" && model == "" {
		return nil, nil
	}
	c, err := embed.New(base, model, os.Getenv(embed.KeyVariable))
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", embed.URLVariable, embed.ModelVariable, err)
	}
	return c, nil
}

// open opens the index. It stays open.
func (s *searcher) open(ctx context.Context) (*index.Index, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.index != nil {
		return s.index, nil
	}
	src, err := s.explorer.source(ctx, "docs")
	if err == nil && src.DB == nil {
		err = explore.ErrNothingYet
	}
	var refused *explore.RefusedError
	if errors.Is(err, explore.ErrNothingYet) || errors.As(err, &refused) {
		s.log.Warn("search_refused", "error", ledger.Redact(err.Error()))
		return nil, errNoIndex
	}
	if err != nil {
		return nil, err
	}
	model := ""
	if s.client != nil {
		model = s.client.Model()
	}
	x, err := index.Open(ctx, src.DB, model)
	if err != nil {
		return nil, err
	}
	x = x.Keep()
	s.index = &x
	return s.index, nil
}

func (s *searcher) ask(ctx context.Context, q question) (found index.Answer, err error) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		return found, errSearches
	}
	within, cancel := context.WithTimeout(ctx, maxLook)
	defer cancel()
	x, err := s.open(within)
	if err != nil {
		return found, err
	}
	found, err = x.Ask(within, s.client, index.Query{Text: q.Text, Provider: q.Provider, Limit: q.limit})
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return found, errLongSearch
	}
	if found.Failure != nil {
		s.log.Warn("search_by_words_alone", "error", ledger.Redact(found.Failure.Error()))
	}
	return found, err
}

func (s *Server) searchAPI(w http.ResponseWriter, r *http.Request) {
	v := r.URL.Query()
	q, err := readQuestion(v)
	if err = cmp.Or(refuseEmpty(v, "provider", "limit"), err); err == nil && q.Text == "" {
		err = refuse("q: write a question")
	}
	var found index.Answer
	if err == nil {
		found, err = s.searcher.ask(r.Context(), q)
	}
	s.reply(w, r, found, err)
}

// searchPage is the data of the page of the search.
type searchPage struct {
	question
	index.Answer
}

func (p *pages) search(w http.ResponseWriter, r *http.Request) {
	q, err := readQuestion(r.URL.Query())
	v := searchPage{question: q}
	if err == nil && q.Text != "" {
		v.Answer, err = p.server.searcher.ask(r.Context(), q)
	}
	if err != nil {
		p.server.fail(w, r, err)
		return
	}
	page := p.view(r, "Search documentation", "search", v)
	page.Live = false // each load of the page is a search
	b, err := p.render("search", page)
	p.send(w, r, b, err)
}
