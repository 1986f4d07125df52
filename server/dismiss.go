package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
)

var errNoLetter = &answerError{http.StatusNotFound, "there is no such dead letter; it may be resolved. GET /api/v1/dead-letters lists them"}

// letter reads the dead letter that a path names.
func (s *Server) letter(r *http.Request) (deadLetter, error) {
	job, id := r.PathValue("job"), r.PathValue("id")
	if !slices.Contains(s.jobs.names(), job) || !ledger.IsName(id) {
		return deadLetter{}, errNoLetter
	}
	d, err := ledger.Get(r.Context(), s.store, job, id)
	if errors.Is(err, store.ErrNotExist) {
		err = errNoLetter
	}
	return deadLetter{id, d}, err
}

func (s *Server) showDeadLetter(c *call) (any, error) { return s.letter(c.Request) }

func (s *Server) dismissDeadLetter(c *call) (any, error) {
	d, err := s.letter(c.Request)
	if err != nil {
		return nil, err
	}
	return s.dismiss(c.Context(), d, c.in.Get("note"))
}

func (s *Server) reopenDeadLetter(c *call) (any, error) {
	d, err := s.letter(c.Request)
	if err != nil {
		return nil, err
	}
	return s.reopen(c.Context(), d)
}

// dismiss counts a dead letter out of the open ones.
func (s *Server) dismiss(ctx context.Context, d deadLetter, note string) (deadLetter, error) {
	note = strings.TrimSpace(note)
	if note == "" || len(note) > ledger.MaxNote {
		return d, refuse("note: say in 1 to %d bytes why nothing will be done about it", ledger.MaxNote)
	}
	return s.setDismissed(ctx, d, "dead_letter_dismiss", &ledger.Dismissal{At: s.now(), By: whoIn(ctx), Note: note})
}

// reopen takes a dismissal back.
func (s *Server) reopen(ctx context.Context, d deadLetter) (deadLetter, error) {
	if d.Open() {
		return d, conflict("this dead letter is open")
	}
	return s.setDismissed(ctx, d, "dead_letter_reopen", nil)
}

func (s *Server) setDismissed(ctx context.Context, d deadLetter, action string, why *ledger.Dismissal) (deadLetter, error) {
	note := ""
	if why != nil {
		note = why.Note
	}
	if err := s.audited(ctx, action, d.Job+"/"+d.ID, note); err != nil {
		return d, err
	}
	now, err := ledger.Dismiss(ctx, s.store, d.Job, d.ID, why)
	if errors.Is(err, store.ErrNotExist) {
		err = errNoLetter
	}
	return deadLetter{d.ID, now}, err
}

const (
	// maxReplay is how many dead letters of several runs are replayed at a time.
	maxReplay = 10_000
	// replayArgs is how many ids one call of the pipeline program gets.
	replayArgs = 1000
)

// toReplay are the ids of the open dead letters that a filter chooses, by job.
func (s *Server) toReplay(ctx context.Context, f deadLetterFilter) (ids map[string][]string, n int, err error) {
	if f.State != ledger.OpenLetters {
		return nil, 0, refuse("state: a dismissed dead letter is not replayed; reopen it first")
	}
	ids = map[string][]string{}
	for d, err := range ledger.AllDeadLetters(ctx, s.store, f.query(0)) {
		if err != nil {
			if ctx.Err() != nil {
				return nil, 0, err
			}
			s.log.Warn("dead_letter_unreadable", "job", f.Job, "error", ledger.Redact(err.Error()))
			continue
		}
		if n++; n > maxReplay {
			return nil, 0, conflict("the filter chooses more than %d dead letters; choose fewer, or use `pipeline dead-letters replay`", maxReplay)
		}
		ids[d.Job] = append(ids[d.Job], d.ID())
	}
	return ids, n, nil
}

// replayFound lets the next runs try the inputs of all dead letters that a filter
// chooses.
func (s *Server) replayFound(ctx context.Context, f deadLetterFilter) (replayed, error) {
	ids, n, err := s.toReplay(ctx, f)
	if err != nil || n == 0 {
		return replayed{Jobs: []string{}}, err
	}
	jobs := slices.Sorted(maps.Keys(ids))
	if err := s.audited(ctx, "dead_letters_replay", strings.Join(jobs, " "), fmt.Sprintf("%d, chosen by %s", n, f.values().Encode())); err != nil {
		return replayed{}, err
	}
	for _, job := range jobs {
		for some := range slices.Chunk(ids[job], replayArgs) {
			if err := s.runner.replay(ctx, job, "", some); err != nil {
				return replayed{}, err
			}
		}
	}
	return replayed{n, jobs, "start a run of each of these jobs: it tries them again"}, nil
}

// replayed is the answer to a replay over several runs.
type replayed struct {
	Replayed int      `json:"replayed"`
	Jobs     []string `json:"jobs"`
	Todo     string   `json:"todo,omitempty"`
}

func (s *Server) replayDeadLettersFound(c *call) (any, error) {
	f, err := readDeadLetterFilter(c.in, s.jobs)
	if err = cmp.Or(checked(c.in, deadLetterFields(s.jobs), !c.form), err); err != nil {
		return nil, err
	}
	done, err := s.replayFound(c.Context(), f)
	c.next = fmt.Sprintf("%s&replayed=%d", f.URL(""), done.Replayed)
	return done, err
}
