package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/cmd/search/index"
	"github.com/newsfork/seed-engine/io/db"
)

// A client of the Model Context Protocol lists the tools, searches, asks for changes and
// for the reason of a page's state.
func TestMCP(t *testing.T) {
	emptyEnv(t)
	dir := t.TempDir()
	crawl(t, "--provider=stripe --store="+dir)
	require.Equal(t, 0, here(t, "embed --store="+dir).code)
	d, err := db.Open(t.Context(), "sqlite://"+filepath.ToSlash(dir)+".db")
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	x, err := index.Open(t.Context(), d, "")
	require.NoError(t, err)
	ours, theirs := mcp.NewInMemoryTransports()
	served, err := mcpServer(x, nil).Connect(t.Context(), ours, nil)
	require.NoError(t, err)
	defer func() { _ = served.Close() }() // its client has closed it
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), theirs, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()

	tools, err := client.ListTools(t.Context(), nil)
	require.NoError(t, err)
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
		assert.True(t, tool.Annotations.ReadOnlyHint, tool.Name)
	}
	assert.ElementsMatch(t, []string{"search", "changes_since", "why"}, names)
	call := func(name string, args map[string]any, into any) bool {
		t.Helper()
		r, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
		require.NoError(t, err)
		if r.IsError {
			return false
		}
		b, err := json.Marshal(r.StructuredContent)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(b, into))
		return true
	}
	var found struct{ Results []index.Found }
	require.True(t, call("search", map[string]any{"question": "the limits of requests", "limit": 2}, &found))
	require.Len(t, found.Results, 2)
	assert.Equal(t, "stripe", found.Results[0].Provider)
	assert.LessOrEqual(t, len([]rune(found.Results[0].Excerpt)), 200)
	assert.Empty(t, found.Results[0].Whole)
	var changed struct {
		Pages []struct{ URL, Kind string }
		More  bool
	}
	require.True(t, call("changes_since", map[string]any{"since": "2020-01-01"}, &changed))
	require.NotEmpty(t, changed.Pages)
	assert.Equal(t, "new", changed.Pages[0].Kind)
	var later struct{ Pages []any }
	require.True(t, call("changes_since", map[string]any{"since": "2999-01-01T00:00:00Z"}, &later))
	assert.Empty(t, later.Pages)
	for name, args := range map[string]map[string]any{"search": {"question": "limits"}, "changes_since": {"since": "2020-01-01"}} {
		args["provider"] = "Stripe"
		r, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
		require.NoError(t, err)
		require.True(t, r.IsError, name)
		require.Equal(t, `there is nothing of a provider "Stripe"; the most similar of 1 are: stripe`, r.Content[0].(*mcp.TextContent).Text)
	}
	require.True(t, call("search", map[string]any{"question": strings.Repeat("결제", 500)}, &found))
	require.False(t, call("search", map[string]any{"question": strings.Repeat("결제", 501)}, &found))
	var why struct {
		Pages []struct{ URL, Status string }
	}
	require.True(t, call("why", map[string]any{"url": changed.Pages[0].URL}, &why))
	assert.Equal(t, "indexed", why.Pages[0].Status)
	for _, pasted := range []string{"https://docs.stripe.com/api", "https://docs.stripe.com/api/", " https://docs.stripe.com/api#authentication", "http://Docs.Stripe.COM:80/api/?utm_source=x", "https://www.docs.stripe.com//api",
		"docs.stripe.com/%61pi?page=2"} {
		why.Pages = nil
		require.True(t, call("why", map[string]any{"url": pasted}, &why), pasted)
		require.Len(t, why.Pages, 1, pasted)
		assert.Equal(t, "https://docs.stripe.com/api", why.Pages[0].URL, pasted)
	}
	for name, args := range map[string]map[string]any{"search": {"question": " "}, "changes_since": {"since": "x"}, "why": {"url": "https://nobody.example/"}} {
		assert.False(t, call(name, args, nil), name)
	}
}
