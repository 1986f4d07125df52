package kept_test

import (
	"encoding/json"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/kept"
	"github.com/newsfork/seed-engine/io/store"
)

// Each change is a version of its own, and what somebody else has changed is not
// overwritten.
func TestVersions(t *testing.T) {
	s, err := store.Open(t.Context(), "mem://"+t.Name())
	require.NoError(t, err)
	shelf := kept.On(s, "things/")
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	add := func(name string, after int, body string) error {
		_, err := shelf.Add(t.Context(), name, after, kept.Version{At: at, Who: "a", Action: "edit", Body: json.RawMessage(body)})
		return err
	}
	for i := range 12 { // by number, not by letter
		require.NoError(t, add("one", i, `"`+strconv.Itoa(i+1)+`"`))
	}
	require.NoError(t, add("one-more", 0, `{}`))
	require.ErrorIs(t, add("one", 11, `"late"`), kept.ErrChanged)
	require.ErrorIs(t, add("one", 0, `"new"`), kept.ErrChanged)
	require.ErrorIs(t, add("two", 5, `"gap"`), kept.ErrChanged)

	require.NoError(t, store.Write(t.Context(), s, "things/one/readme.txt", []byte("no version"), store.PutOptions{}))
	require.NoError(t, store.Write(t.Context(), s, "things/readme.json", []byte("no version"), store.PutOptions{}))
	other := kept.On(s, "things/")
	newest, err := other.Newest(t.Context())
	require.NoError(t, err)
	assert.Equal(t, map[string]kept.Version{
		"one":      {Number: 12, At: at, Who: "a", Action: "edit", Body: json.RawMessage(`"12"`)},
		"one-more": {Number: 1, At: at, Who: "a", Action: "edit", Body: json.RawMessage(`{}`)}}, newest)
	history, err := other.History(t.Context(), "one", 2)
	require.NoError(t, err)
	require.Len(t, history, 2)
	assert.Equal(t, []int{12, 11}, []int{history[0].Number, history[1].Number})
}

// Of several writers of one version, one succeeds.
func TestOneWriterSucceeds(t *testing.T) {
	s, err := store.Open(t.Context(), t.TempDir())
	require.NoError(t, err)
	shelf := kept.On(s, "things/")
	var all sync.WaitGroup
	var done, late atomic.Int64
	for i := range 8 {
		all.Go(func() {
			switch _, err := shelf.Add(t.Context(), "one", 0, kept.Version{Who: strconv.Itoa(i), Body: json.RawMessage(`1`)}); {
			case err == nil:
				done.Add(1)
			case assert.ErrorIs(t, err, kept.ErrChanged):
				late.Add(1)
			}
		})
	}
	all.Wait()
	assert.Equal(t, []int64{1, 7}, []int64{done.Load(), late.Load()})
}
