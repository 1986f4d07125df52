package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"strconv"
	"strings"

	"github.com/newsfork/seed-engine/io/index"
	"github.com/newsfork/seed-engine/io/ledger"
)

const (
	// maxSearches are under way at a time; each is a process.
	maxSearches = 4
	maxQuestion = 1000
	maxFound    = 50
	foundOnPage = 10
	// exitUsage is the exit code of the pipeline program for what a person has to change.
	exitUsage = 2
)

// searchResult is what `pipeline search --json` prints.
type searchResult struct {
	Results   []index.Found `json:"results"`
	ByVectors bool          `json:"by_vectors"` // else by words alone
}

// question is what somebody searches for.
type question struct {
	Text, Provider string
	limit          int
}

func readQuestion(q url.Values) (question, error) {
	ask := question{Text: strings.TrimSpace(q.Get("q")), Provider: q.Get("provider"), limit: foundOnPage}
	if len(ask.Text) > maxQuestion {
		return ask, refuse("q: write at most %d letters", maxQuestion)
	}
	if ask.Provider != "" && !idPattern.MatchString(ask.Provider) {
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
	errNoIndex  = conflict("there is no search index here, or its settings are wrong; run the docs job and `pipeline embed`. The server's log says more")
	errSearches = &answerError{http.StatusServiceUnavailable, "too many searches are under way; try again"}
)

// searchDocs asks the search index of the docs job. The pipeline program does it, because the
// index is in the job's database.
func (s *Server) searchDocs(ctx context.Context, q question) (searchResult, error) {
	select {
	case s.searches <- struct{}{}:
		defer func() { <-s.searches }()
	default:
		return searchResult{}, errSearches
	}
	result, err := s.runner.search(ctx, q)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == exitUsage {
		s.log.Warn("search_refused", "error", ledger.Redact(err.Error()))
		return result, errNoIndex
	}
	return result, err
}

func (r *runner) search(ctx context.Context, q question) (result searchResult, err error) {
	args := []string{"search", "--json", "--question=" + q.Text, "--limit=" + strconv.Itoa(q.limit)}
	if q.Provider != "" {
		args = append(args, "--provider="+q.Provider)
	}
	cmd := r.command(args...)
	var text bytes.Buffer
	cmd.Stdout = &text
	if err := runCommand(ctx, cmd); err != nil {
		return result, fmt.Errorf("searching: %w", err)
	}
	if err := json.Unmarshal(text.Bytes(), &result); err != nil {
		return result, fmt.Errorf("reading what was found: %w", err)
	}
	return result, nil
}

func (s *Server) searchAPI(w http.ResponseWriter, r *http.Request) {
	v := r.URL.Query()
	q, err := readQuestion(v)
	if err = cmp.Or(refuseEmpty(v, "provider", "limit"), err); err == nil && q.Text == "" {
		err = refuse("q: write a question")
	}
	var found searchResult
	if err == nil {
		found, err = s.searchDocs(r.Context(), q)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.answer(w, r, http.StatusOK, found)
}

// searchPage is the data of the page of the search.
type searchPage struct {
	question
	searchResult
}

func (p *pages) search(w http.ResponseWriter, r *http.Request) {
	q, err := readQuestion(r.URL.Query())
	v := searchPage{question: q}
	if err == nil && q.Text != "" {
		v.searchResult, err = p.server.searchDocs(r.Context(), q)
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
