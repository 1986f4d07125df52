package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/untrusted"
)

// Input identifies what failed, well enough to try it again. It never has a page's
// text.
type Input struct {
	// Key of the raw file that it comes from.
	File string `json:"file,omitempty"`
	// Number of the record in that file, from 0.
	Index *int `json:"index,omitempty"`
	// Numbers of all bad records of that file.
	Indices []int `json:"indices,omitempty"`
	// The URL that failed.
	URL string `json:"url,omitempty"`
	// Key of the object or folder that could not be written.
	Key string `json:"key,omitempty"`
	// Id of the domain that failed.
	DomainID string `json:"domain_id,omitempty"`
	// Provider, site or publisher of the docs, catalog and news jobs.
	Source string `json:"source,omitempty"`
}

// DeadLetter is a failure that is recorded for a person: the object
// dead-letters/{job}/{id}.json. The comments of its fields are a page in docs/reference.
type DeadLetter struct {
	// The job that failed.
	Job string `json:"job"`
	// The run of the last failure.
	RunID string `json:"run_id"`
	// Other runs that failed with the same input, newest last.
	Earlier []string `json:"earlier_run_ids,omitempty"`
	// The part of the job that failed.
	Stage string `json:"stage"`
	// What failed, for programs.
	Kind string `json:"kind"`
	// Another try may succeed without a change.
	Retryable bool `json:"retryable"`
	// How often it failed.
	Attempts int `json:"attempts"`
	// The first failure.
	FirstAt time.Time `json:"first_at"`
	// The last failure.
	LastAt time.Time `json:"last_at"`
	Input  Input     `json:"input"`
	// What happened, for people, without secrets.
	Error string `json:"error"`
	// Who decided that nothing will be done about it, when and why. A new failure of the same input removes this.
	Dismissed *Dismissal `json:"dismissed,omitempty"`
}

// Dismissal says who dismissed a dead letter.
type Dismissal struct {
	// When it was dismissed.
	At time.Time `json:"at"`
	// Who dismissed it.
	By string `json:"by"`
	// Why, in their words.
	Note string `json:"note"`
}

// Open reports whether nobody has dismissed the dead letter.
func (d DeadLetter) Open() bool { return d.Dismissed == nil }

// ID is the stable id of a dead letter. It depends on the job and the input only, so
// that a second failure of the same input, even of another kind, updates the dead
// letter, and a success can find it. Only bad_records has its own ids, because a file
// with bad records can be complete. File and index are used only if the input has no
// key, URL or domain id, because the next time another file may have the same input.
func (d DeadLetter) ID() string {
	class := "input"
	if d.Kind == "bad_records" {
		class = "records"
	}
	in := d.Input
	in.Indices, in.URL = nil, Redact(in.URL) // as it is stored
	if in.Key != "" || in.URL != "" || in.DomainID != "" {
		in.File, in.Index = "", nil
	}
	// A struct of strings and numbers always encodes.
	b, _ := json.Marshal([]any{d.Job, class, in})
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:12])
}

func (d DeadLetter) check() error {
	if !name.MatchString(d.Job) || d.Kind == "" {
		return fmt.Errorf("job is %q, kind is %q", d.Job, d.Kind)
	}
	return nil
}

// FailedIn reports whether a run failed with this input.
func (d DeadLetter) FailedIn(runID string) bool {
	return d.RunID == runID || slices.Contains(d.Earlier, runID)
}

// maxEarlier is how many earlier runs a dead letter lists.
const maxEarlier = 50

const deadLettersPrefix = "dead-letters/"

func deadLetterKey(job, id string) (string, error) {
	if err := errors.Join(checkName("job", job), checkName("dead letter's id", id)); err != nil {
		return "", err
	}
	return deadLettersPrefix + job + "/" + id + ".json", nil
}

// Put writes a dead letter. It updates an existing one for the same input, which keeps
// the time of its first failure and counts one attempt more. LastAt is the time of the
// failure; the zero time means now. Two processes that fail with the same input at the
// same moment may count one attempt together.
func Put(ctx context.Context, s store.Store, d DeadLetter) error {
	key, err := deadLetterKey(d.Job, d.ID())
	if err != nil {
		return fmt.Errorf("writing a dead letter: %w", err)
	}
	if d.Kind == "" {
		return fmt.Errorf("writing a dead letter to %s: it has no kind", key)
	}
	if d.LastAt.IsZero() {
		d.LastAt = time.Now()
	}
	d.LastAt = d.LastAt.UTC()
	d.FirstAt, d.Attempts, d.Dismissed = d.LastAt, 1, nil
	d.Input.URL = Redact(d.Input.URL)
	d.Error = bounded(untrusted.Text(Redact(d.Error), 0), maxError)

	b, err := read(ctx, s, key)
	if err != nil && !errors.Is(err, store.ErrNotExist) {
		return err
	}
	// An unreadable one is replaced: the new failure is worth more than the count of
	// earlier ones.
	if old, bad := decode[DeadLetter](b); err == nil && bad == nil {
		d.FirstAt, d.Attempts = old.FirstAt, old.Attempts+1
		runs := slices.DeleteFunc(append(old.Earlier, old.RunID), func(id string) bool { return id == d.RunID || id == "" })
		d.Earlier = runs[max(0, len(runs)-maxEarlier):]
	}
	return store.WriteJSON(ctx, s, key, d)
}

// Get reads one dead letter; the error matches store.ErrNotExist when there is
// none.
func Get(ctx context.Context, s store.Store, job, id string) (DeadLetter, error) {
	key, err := deadLetterKey(job, id)
	if err != nil {
		return DeadLetter{}, fmt.Errorf("reading a dead letter: %w", err)
	}
	return load[DeadLetter](ctx, s, key)
}

// MaxNote is the maximum length of a dismissal's note, in bytes.
const MaxNote = 2000

// Dismiss keeps a dead letter and counts it out of the open ones. nil opens it again.
// The error matches store.ErrNotExist when there is none. A failure at the same moment
// may be dismissed with it.
func Dismiss(ctx context.Context, s store.Store, job, id string, why *Dismissal) (DeadLetter, error) {
	d, err := Get(ctx, s, job, id)
	if err != nil {
		return d, err
	}
	if d.Dismissed = why; why != nil {
		d.Dismissed = &Dismissal{At: why.At.UTC(), By: oneLine(why.By, MaxNote), Note: bounded(untrusted.Text(Redact(why.Note), 0), MaxNote)}
	}
	return d, store.WriteJSON(ctx, s, deadLettersPrefix+job+"/"+id+".json", d)
}

// Remove removes a dead letter. An absent one is no error.
func Remove(ctx context.Context, s store.Store, job, id string) error {
	key, err := deadLetterKey(job, id)
	if err != nil {
		return fmt.Errorf("removing a dead letter: %w", err)
	}
	return store.Remove(ctx, s, key)
}

// ListDeadLetters yields the dead letters of a job (all jobs when empty) with failures
// in a run (any run when empty), in key order. For an unreadable one it yields an
// error that names it, and continues.
func ListDeadLetters(ctx context.Context, s store.Store, job, runID string) iter.Seq2[DeadLetter, error] {
	return AllDeadLetters(ctx, s, DeadLetterQuery{Job: job, RunID: runID})
}

func deadLetterObjects(ctx context.Context, s store.Store, job string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		prefix := deadLettersPrefix
		if job != "" {
			if err := checkName("job", job); err != nil {
				yield(store.Object{}, fmt.Errorf("listing dead letters: %w", err))
				return
			}
			prefix += job + "/"
		}
		for o, err := range s.List(ctx, prefix) {
			if err != nil {
				yield(store.Object{}, fmt.Errorf("listing %s: %w", prefix, err))
				return
			}
			if strings.HasSuffix(o.Key, ".json") && !yield(o, nil) {
				return
			}
		}
	}
}
