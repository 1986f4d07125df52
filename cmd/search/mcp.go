package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/newsfork/seed-engine/cmd/search/embed"
	"github.com/newsfork/seed-engine/cmd/search/index"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/docs/asked"
)

// maxChanges is how many pages the tool changes_since names.
const maxChanges = 200

// mcpServer is a server of the Model Context Protocol (modelcontextprotocol.io): language
// models ask it for the crawled documentation. It shows what `search ask` shows.
func mcpServer(x index.Index, c *embed.Client) *mcp.Server {
	version := "devel"
	if b, ok := debug.ReadBuildInfo(); ok {
		version = b.Main.Version
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "seed-engine", Version: version}, nil)
	look := &mcp.ToolAnnotations{ReadOnlyHint: true}
	type searchArgs struct {
		Question string `json:"question" jsonschema:"a question or words, at most 1000 letters"`
		Provider string `json:"provider,omitempty" jsonschema:"only the documentation of this provider, by its id"`
		Limit    int    `json:"limit,omitempty" jsonschema:"how many results, 1 to 50; 5 when it is left out"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "search", Annotations: look, Description: "Searches the crawled documentation. Gives links with at most 200 characters, and the whole text where the provider's terms allow it. Where by_vectors is false the words of the question count alone: use those of the documentation."},
		func(ctx context.Context, _ *mcp.CallToolRequest, a searchArgs) (*mcp.CallToolResult, index.Answer, error) {
			q := index.Query{Text: strings.TrimSpace(a.Question), Provider: a.Provider, Limit: a.Limit}
			if q.Limit == 0 {
				q.Limit = 5
			}
			if q.Text == "" || utf8.RuneCountInString(q.Text) > maxQuestion || q.Limit < 1 || q.Limit > maxFound {
				return nil, index.Answer{}, fmt.Errorf("write a question of at most %d letters, and a limit of 1 to %d", maxQuestion, maxFound)
			}
			found, err := x.Ask(ctx, c, q)
			if err == nil && len(found.Results) == 0 {
				err = knownProvider(ctx, x.DB, a.Provider)
			}
			return nil, found, err
		})
	type changesArgs struct {
		Since    string `json:"since" jsonschema:"a time like 2026-01-28 or 2026-01-28T12:00:00Z"`
		Provider string `json:"provider,omitempty" jsonschema:"only the pages of this provider, by its id"`
	}
	type changes struct {
		Pages []asked.ChangedPage `json:"pages"`
		More  bool                `json:"more"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "changes_since", Annotations: look, Description: fmt.Sprintf("Names the pages of the documentation that are new, updated or deleted since a time, the newest first, at most %d.", maxChanges)},
		func(ctx context.Context, _ *mcp.CallToolRequest, a changesArgs) (*mcp.CallToolResult, changes, error) {
			since, err := time.Parse(time.RFC3339, a.Since)
			if err != nil {
				since, err = time.Parse(time.DateOnly, a.Since)
			}
			if err != nil {
				return nil, changes{}, fmt.Errorf("since: write a time like 2026-01-28 or 2026-01-28T12:00:00Z")
			}
			all, err := asked.ChangesSince(ctx, x.DB, since, a.Provider, maxChanges+1)
			if err == nil && len(all) == 0 {
				err = knownProvider(ctx, x.DB, a.Provider)
			}
			out := changes{Pages: append([]asked.ChangedPage{}, all[:min(len(all), maxChanges)]...), More: len(all) > maxChanges}
			return nil, out, err
		})
	type whyArgs struct {
		URL string `json:"url" jsonschema:"the address of a page, also with a fragment, a slash at its end or other case of the host"`
	}
	type why struct {
		Pages []asked.PageState `json:"pages"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "why", Annotations: look, Description: "Says what became of a page in the last crawl and why: indexed, skipped, blocked, failed, deleted …"},
		func(ctx context.Context, _ *mcp.CallToolRequest, a whyArgs) (*mcp.CallToolResult, why, error) {
			all, err := asked.PageStates(ctx, x.DB, a.URL)
			if err == nil && len(all) == 0 {
				err = fmt.Errorf("no crawl has met the page %s; `pipeline --job=docs --explain=URL` says which rule accepts or rejects it", a.URL)
			}
			return nil, why{all}, err
		})
	return s
}

// serveMCP answers on standard input and output until the client closes them.
func serveMCP(ctx context.Context, x index.Index, c *embed.Client) error {
	if there, err := x.DB.HasTable(ctx, "docs_pages"); err != nil {
		return err
	} else if !there {
		return usage.Errorf("the docs job has not used this database; run it first, or name another one with --db")
	}
	return mcpServer(x, c).Run(ctx, &mcp.StdioTransport{})
}
