package server

import (
	"context"
	"encoding/json"
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

// showDeadLetter answers with one dead letter.
func (s *Server) showDeadLetter(w http.ResponseWriter, r *http.Request) {
	d, err := s.letter(r)
	s.reply(w, r, d, err)
}

func (s *Server) dismissDeadLetter(w http.ResponseWriter, r *http.Request) {
	d, err := s.letter(r)
	var body []byte
	if err == nil {
		body, err = jsonBody(r)
	}
	var fields map[string]string
	if err == nil {
		fields, err = textFields(body, "note")
	}
	if err == nil {
		d, err = s.dismiss(r.Context(), d, fields["note"])
	}
	s.reply(w, r, d, err)
}

func (s *Server) reopenDeadLetter(w http.ResponseWriter, r *http.Request) {
	d, err := s.letter(r)
	if err == nil {
		d, err = s.reopen(r.Context(), d)
	}
	s.reply(w, r, d, err)
}

// textFields reads a JSON object whose values are texts. It may have only these fields.
func textFields(body []byte, names ...string) (map[string]string, error) {
	fields := map[string]string{}
	if len(body) == 0 {
		return fields, nil
	}
	if err := json.Unmarshal(body, &fields); err != nil || fields == nil {
		return nil, refuse("the body is not a JSON object of texts; its fields are %s", strings.Join(names, ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(names, name) {
			return nil, refuse("unknown field %q; the fields are %s", clip(name), strings.Join(names, ", "))
		}
	}
	return fields, nil
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

func (s *Server) replayDeadLettersFound(w http.ResponseWriter, r *http.Request) {
	body, err := jsonBody(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	fields, err := textFields(body, "job", "kind", "run", "from", "to", "text")
	q := map[string][]string{}
	for name, v := range fields {
		q[name] = []string{v}
	}
	if err == nil {
		err = refuseEmpty(q, slices.Sorted(maps.Keys(q))...)
	}
	f, ferr := readDeadLetterFilter(q, s.jobs)
	if err == nil {
		err = ferr
	}
	var done replayed
	if err == nil {
		done, err = s.replayFound(r.Context(), f)
	}
	s.reply(w, r, done, err)
}
