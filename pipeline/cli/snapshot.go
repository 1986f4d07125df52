package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/news"
	"github.com/newsfork/seed-engine/transforms/news/provider"
)

// snapshot makes the command that makes a provider's snapshot of a saved page: the page as it is,
// and a JSON file with what the provider reads from it.
func (p *program) snapshot() *cobra.Command {
	var id, address, page, dir, name, contentType, yamls string
	return p.command("snapshot", "make a publisher's snapshot of a saved page for its tests: the page, and what is read from it as JSON", func(s *option.Set) {
		s.Text(&id, "provider", "", "the publisher's id")
		s.Text(&address, "url", "", "the page's address")
		s.Text(&page, "page", "", "the saved page, with its original bytes")
		s.Text(&dir, "dir", "", "folder of the snapshot (default: the publisher's testdata)")
		s.Text(&name, "name", "", "the snapshot's name without its extension (default: the page's)")
		s.Text(&contentType, "content-type", "", "the Content-Type header that came with the page")
		s.Text(&yamls, "publishers", "", "directory with declarative publishers")
	}, func(context.Context, []string) error {
		if id == "" || address == "" || page == "" {
			return usage.Errorf("use init snapshot --provider=ID --url=ADDRESS --page=SAVED.html; see `help init snapshot`")
		}
		return takeSnapshot(id, address, page, dir, name, contentType, yamls, p.stdout)
	})
}

func takeSnapshot(id, address, page, dir, name, contentType, yamls string, stdout io.Writer) error {
	all := news.Registered()
	if yamls != "" {
		declared, err := provider.ReadDeclarations(os.DirFS(yamls))
		if err != nil {
			return usage.Errorf("--publishers: %w", err)
		}
		all = append(all, declared...)
	}
	i := slices.IndexFunc(all, func(p provider.Provider) bool { return p.ID() == id })
	if i < 0 {
		var ids []string
		for _, p := range all {
			ids = append(ids, p.ID())
		}
		return usage.Errorf("--provider=%s: there is no such provider; use %s", id, usage.Or(ids))
	}
	body, err := os.ReadFile(page)
	if err != nil {
		return usage.Errorf("--page: %w", err)
	}
	if dir == "" {
		dir = filepath.Join("transforms", "news", id, "testdata")
	}
	if name == "" {
		name = strings.TrimSuffix(filepath.Base(page), filepath.Ext(page))
	}
	s, err := provider.Take(all[i], body, contentType, address)
	if err != nil {
		return err
	}
	if err := s.Write(dir, name, body); err != nil {
		return err
	}
	at := filepath.Join(dir, name)
	_, err = fmt.Fprintf(stdout, "wrote %s.html and %s.json; check them before you rely on them:\n  title      %s\n  published  %s\n  body       %d characters\n",
		at, at, s.Article.Title, s.Article.Published, len([]rune(s.Article.Body)))
	return err
}
