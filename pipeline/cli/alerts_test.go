package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger/alert"
	"github.com/newsfork/seed-engine/io/store"
)

// TestAlertsCommand silences alerts, lists them and ends a silence.
func TestAlertsCommand(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(t.Context(), dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	require.NoError(t, store.Write(t.Context(), s, alert.StateKey, []byte(`{"firing":{"x":{"job":"docs","rule":"provider","provider":"stripe","since":"2026-03-02T10:00:00Z","text":"it was held"}}}`), store.PutOptions{}))
	say := func(args ...string) (string, error) {
		var out, stderr bytes.Buffer
		err := dispatch(context.Background(), append(append([]string{"alerts"}, args...), "--store="+dir), &out, &stderr)
		return out.String(), err
	}
	out, err := say("silence", "--job=docs", "--provider=stripe", "--for=2h", "--note=they move their site")
	require.NoError(t, err)
	id, rest, _ := strings.Cut(out, ": ")
	assert.Contains(t, rest, "job docs, provider stripe, until ")
	all, err := alert.Silences(t.Context(), s, time.Now())
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.Equal(t, 2*time.Hour, all[0].Until.Sub(all[0].At))
	assert.True(t, all[0].Covers("docs", "provider", "stripe", time.Now()))
	assert.False(t, all[0].Covers("docs", "provider", "go", time.Now()))
	assert.False(t, all[0].Covers("docs", "provider", "stripe", all[0].Until))
	out, err = say()
	require.NoError(t, err)
	assert.Regexp(t, `docs +provider +stripe +2026-03-02T10:00:00Z +`+id+` +it was held`, out)
	assert.Contains(t, out, "they move their site")
	out, err = say("end", id)
	require.NoError(t, err)
	assert.Equal(t, "ended: job docs, provider stripe\n", out)
	for args, says := range map[string]string{"end " + id: "there is no silence", "end": "write pipeline alerts end ID", "silence": "--for: write a time from 1m to 720h", "silence --for=1s": "--for=1s: write a time from 1m to 720h",
		"silence --for=2h --job=sow": "sow", "silence --for=2h --rule=duraton": "there is no alert \"duraton\"; use one of failure_rate", "hush": "use ls, silence or end", "list x": "write pipeline alerts ls"} {
		_, err := say(strings.Fields(args)...)
		assert.ErrorContains(t, err, says, args)
	}
}
