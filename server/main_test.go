package server

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/ledger/alert"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/server/known"
)

// TestBadUsage has command lines that the server refuses before it listens.
func TestBadUsage(t *testing.T) {
	optionsRead := false
	readOptions := func(context.Context, map[string]string) (store.Store, []string, *slog.Logger, explore.Opener,
		option.Runs, error) {
		optionsRead = true
		s, err := store.Open(t.Context(), t.TempDir())
		return s, nil, slog.New(slog.DiscardHandler), nil, option.Runs{}, err
	}
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	require.NoError(t, os.WriteFile(bad, []byte("schedule: []\n"), 0o600))
	for _, c := range []struct {
		listen, config, says string
	}{
		{"", bad, `unknown field "schedule"`},
		{"", bad + "x", "reading --config"},
		{"8787", "", "write host:port"},
		{"0.0.0.0:8787", "", "a token is needed"},
	} {
		err := Main(t.Context(), c.listen, c.config, readOptions, testJobs())
		var usage interface{ Usage() }
		require.ErrorAs(t, err, &usage, "%v", c)
		assert.ErrorContains(t, err, c.says)
		assert.False(t, optionsRead, "no store is opened, and no sample copied: %v", c)
	}
	refused := errors.New("refused")
	err := Main(t.Context(), "", "", func(context.Context, map[string]string) (store.Store, []string, *slog.Logger, explore.Opener,
		option.Runs, error) {
		return nil, nil, nil, nil, option.Runs{}, refused
	}, testJobs())
	assert.ErrorIs(t, err, refused)
}

// TestDocumentNamesAll checks that docs/server.md names each alert, flag, variable and address of the program.
func TestDocumentNamesAll(t *testing.T) {
	b, err := os.ReadFile("../docs/server.md")
	require.NoError(t, err)
	doc := string(b)
	w := newWorld(t, "done")
	names := map[string]bool{}
	for _, name := range append(alert.Rules(), alert.MinimumSamples) {
		names[name] = true
	}
	for _, name := range append([]string{"--listen", "--config", DefaultListen}, known.SecretVariables...) {
		names[name] = true
	}
	for _, r := range w.routes() {
		_, path, _ := strings.Cut(r.Pattern, " ")
		if !isAPI(path) {
			continue
		}
		names[regexp.MustCompile(`^/api/v1/(runs/\{id\})?`).ReplaceAllString(path, "/")] = path != "/api/v1/runs/{id}"
	}
	for name, wanted := range names {
		if wanted {
			assert.Contains(t, doc, strings.TrimPrefix(name, "//"), "docs/server.md does not name it")
		}
	}
}
