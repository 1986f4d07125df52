package ledger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/storetest"
)

func searched(t *testing.T, s store.Store, q DeadLetterQuery) (ids []string) {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = 100
	}
	page, err := SearchDeadLetters(t.Context(), s, q)
	must(t, err)
	for _, d := range page.DeadLetters {
		ids = append(ids, d.Input.DomainID)
	}
	slices.Sort(ids)
	return ids
}

// folder is a store that knows when its objects were written.
func folder(t *testing.T) store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), t.TempDir())
	must(t, err)
	return s
}

func TestSearchDeadLetters(t *testing.T) {
	s, ctx := folder(t), t.Context()
	for i, c := range []struct{ domain, job, kind, run string }{
		{"a.sg", "seed", "bad_file", "r1"}, {"b.sg", "seed", "store_failed", "r1"}, {"c.kr", "docs", "bad_file", "r2"}, {"d.kr", "news", "not_html", "r3"},
	} {
		must(t, Put(ctx, s, DeadLetter{Job: c.job, Kind: c.kind, RunID: c.run, LastAt: day.AddDate(0, 0, i), Input: Input{DomainID: c.domain}, Error: "The disk of " + c.domain}))
	}
	must(t, Put(ctx, s, DeadLetter{Job: "seed", Kind: "bad_file", RunID: "r4", LastAt: day.AddDate(0, 0, 9), Input: Input{DomainID: "a.sg"}}))
	first := DeadLetter{Job: "news", Kind: "not_html", Input: Input{DomainID: "d.kr"}}.ID()
	_, err := Dismiss(ctx, s, "news", first, &Dismissal{At: day, By: "kim", Note: "It is a picture."})
	must(t, err)
	must(t, store.Write(ctx, s, "dead-letters/seed/zz.json", []byte("{}"), store.PutOptions{}))
	for _, c := range []struct {
		what string
		q    DeadLetterQuery
		want []string
	}{
		{"all", DeadLetterQuery{}, []string{"a.sg", "b.sg", "c.kr", "d.kr"}},
		{"a job", DeadLetterQuery{Job: "docs"}, []string{"c.kr"}},
		{"a kind", DeadLetterQuery{Kind: "bad_file"}, []string{"a.sg", "c.kr"}},
		{"an earlier run", DeadLetterQuery{RunID: "r1"}, []string{"a.sg", "b.sg"}},
		{"open", DeadLetterQuery{State: OpenLetters}, []string{"a.sg", "b.sg", "c.kr"}},
		{"dismissed", DeadLetterQuery{State: DismissedLetters}, []string{"d.kr"}},
		{"text in a note", DeadLetterQuery{Text: "a picture"}, []string{"d.kr"}},
		{"from a day", DeadLetterQuery{From: day.AddDate(0, 0, 2)}, []string{"a.sg", "c.kr", "d.kr"}},
		{"to a day", DeadLetterQuery{To: day.AddDate(0, 0, 2)}, []string{"b.sg"}},
		{"text in an error", DeadLetterQuery{Text: "disk of c"}, []string{"c.kr"}},
		{"an id", DeadLetterQuery{Text: first}, []string{"d.kr"}},
		{"nothing", DeadLetterQuery{Job: "catalog"}, nil},
	} {
		assert.Equal(t, c.want, searched(t, s, c.q), c.what)
		var all []string
		for d, err := range AllDeadLetters(ctx, s, c.q) {
			if err == nil {
				all = append(all, d.Input.DomainID)
			}
		}
		if slices.Sort(all); !slices.Equal(all, c.want) {
			t.Errorf("%s: AllDeadLetters yields %v, want %v", c.what, all, c.want)
		}
	}
	page, err := SearchDeadLetters(ctx, s, DeadLetterQuery{Limit: 10})
	must(t, err)
	assert.True(t, len(page.Unreadable) == 1 && strings.Contains(page.Unreadable[0].Error(), "zz.json") && page.Next == "",
		"unreadable %v, next %q", page.Unreadable, page.Next)
	for _, bad := range []string{"x", "1", "1.", ".seed/a", "1x.seed/a"} {
		_, err := SearchDeadLetters(ctx, s, DeadLetterQuery{After: bad, Limit: 1})
		assert.ErrorIs(t, err, ErrPlace, "%q", bad)
	}
}

// A new failure opens a dismissed dead letter; a success removes it as any other.
func TestDismiss(t *testing.T) {
	s, ctx := storetest.NewMemory(), t.Context()
	d := testDeadLetter("store_failed", "r1")
	must(t, Put(ctx, s, d))
	at := day.Add(time.Hour)
	got, err := Dismiss(ctx, s, "seed", d.ID(), &Dismissal{At: at, By: "kim\x1b[2J", Note: "the disk is new; https://u:secret@h/"})
	must(t, err)
	kept, err := Get(ctx, s, "seed", d.ID())
	must(t, err)
	assert.True(t, !kept.Open() && kept.Attempts == 1 && *kept.Dismissed == *got.Dismissed && kept.Dismissed.At.Equal(at),
		"kept %+v, dismissed %+v", kept, kept.Dismissed)
	assert.True(t, !strings.Contains(kept.Dismissed.By+kept.Dismissed.Note, "\x1b") && !strings.Contains(kept.Dismissed.Note, "secret"),
		"not cleaned: %+v", kept.Dismissed)
	kept, err = Dismiss(ctx, s, "seed", d.ID(), nil)
	must(t, err)
	assert.True(t, kept.Open(), "it is not open again")
	_, err = Dismiss(ctx, s, "seed", d.ID(), &Dismissal{At: at, By: "kim", Note: "x"})
	must(t, err)
	must(t, Put(ctx, s, testDeadLetter("store_failed", "r2")))
	kept, err = Get(ctx, s, "seed", d.ID())
	must(t, err)
	assert.True(t, kept.Open() && kept.Attempts == 2, "after a new failure: %+v", kept)
	if _, err := Dismiss(ctx, s, "seed", "none", nil); !errors.Is(err, store.ErrNotExist) {
		t.Errorf("an absent one: %v", err)
	}
}

// All dead letters are read many at a time, never more than searchReaders, and come in
// order.
func TestDeadLettersAreReadInParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const all = 10*searchReaders + 1
		s := storetest.NewMemory()
		var now, most atomic.Int64
		s.Hook = func(op, _ string, before bool) {
			if op != "open" {
				return
			}
			if !before {
				now.Add(-1)
				return
			}
			for n := now.Add(1); n > most.Load(); {
				most.Store(n)
			}
			time.Sleep(time.Second)
		}
		var ids []string
		for i := range all {
			ids = append(ids, fmt.Sprintf("d%05d", i))
			s.M["dead-letters/seed/"+ids[i]+".json"] = fmt.Sprintf(`{"job":"seed","kind":"bad_file","input":{"domain_id":"%s"}}`, ids[i])
		}
		began := time.Now()
		var got []string
		for d, err := range ListDeadLetters(t.Context(), s, "", "") {
			must(t, err)
			got = append(got, d.Input.DomainID)
		}
		if took := time.Since(began); took > 11*time.Second || !slices.Equal(got, ids) || most.Load() != searchReaders {
			t.Errorf("%d dead letters in %s, at most %d reads at a time", len(got), took, most.Load())
		}
		began = time.Now()
		named, err := NamedDeadLetters(t.Context(), s, "seed", append([]string{"none"}, ids...))
		must(t, err)
		if took := time.Since(began); took > 11*time.Second || len(named) != all || named[7].Input.DomainID != ids[7] {
			t.Errorf("%d named dead letters in %s", len(named), took)
		}
	})
}

// Pages follow each other without a gap, and none has more than its limit in memory.
func TestSearchPages(t *testing.T) {
	const all = 2*maxSearched + 500
	s, ctx := storetest.NewMemory(), t.Context()
	for i := range all {
		id := fmt.Sprintf("d%05d", i)
		s.M["dead-letters/seed/"+id+".json"] = fmt.Sprintf(`{"job":"seed","kind":"bad_file","run_id":"r%d","input":{"domain_id":"%s"}}`, i%1000, id)
	}
	for _, c := range []struct {
		q    DeadLetterQuery
		want int
	}{
		{DeadLetterQuery{Limit: 300}, all},
		{DeadLetterQuery{Limit: 300, RunID: "r7"}, 5},
		{DeadLetterQuery{Limit: 2, RunID: "r7"}, 5},
		{DeadLetterQuery{Limit: 5, Job: "none"}, 0},
	} {
		seen := map[string]bool{}
		for pages := 0; ; pages++ {
			page, err := SearchDeadLetters(ctx, s, c.q)
			must(t, err)
			require.True(t, len(page.DeadLetters) <= c.q.Limit && page.Searched <= maxSearched && pages <= all,
				"%+v: page %d has %d and searched %d", c.q, pages, len(page.DeadLetters), page.Searched)
			for _, d := range page.DeadLetters {
				require.False(t, seen[d.Input.DomainID], "%+v: %s twice", c.q, d.Input.DomainID)
				seen[d.Input.DomainID] = true
			}
			if c.q.After = page.Next; page.Next == "" {
				break
			}
		}
		assert.Equal(t, c.want, len(seen), c.q)
	}
}

// manyDeadLetters lists any number of them, and measures the memory at the end
// of the listing.
type manyDeadLetters struct {
	store.Store
	all  int
	used uint64
}

func (m *manyDeadLetters) List(context.Context, string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		for i := range m.all {
			at := day.Add(time.Duration(i*7919%m.all) * time.Second)
			if !yield(store.Object{Key: fmt.Sprintf("dead-letters/seed/d%06d.json", i), ModTime: at}, nil) {
				return
			}
		}
		runtime.GC()
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		m.used = now.HeapAlloc
	}
}

func (m *manyDeadLetters) Open(context.Context, string) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(`{"job":"seed","kind":"bad_file"}`)), nil
}

// The memory of a page does not grow with the number of dead letters.
func TestSearchMemory(t *testing.T) {
	used := func(all int) uint64 {
		s := &manyDeadLetters{storetest.NewMemory(), all, 0}
		page, err := SearchDeadLetters(t.Context(), s, DeadLetterQuery{Limit: 50, Text: "nothing has this"})
		must(t, err)
		require.True(t, page.Searched == maxSearched && page.Next != "" && len(page.DeadLetters) <= 0,
			"searched %d, next %q", page.Searched, page.Next)
		return s.used
	}
	few, many := used(5_000), used(100_000)
	assert.LessOrEqual(t, many, few+1<<20, "%d bytes with 5,000 dead letters", few) // 95,000 keys alone are 3 MB
}

func FuzzPlace(f *testing.F) {
	for _, seed := range []string{"", "1.seed/a", "-1.seed/a.b", "1.", "x.y/z"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePlace(text)
		if err != nil || text == "" {
			return
		}
		if again, err := parsePlace(p.String()); err != nil || again.compare(p) != 0 {
			t.Errorf("%q is %+v, then %+v (%v)", text, p, again, err)
		}
	})
}
