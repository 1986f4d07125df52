package cli

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/news"
	"github.com/newsfork/seed-engine/transforms/news/provider"
)

// snapshotUsage shows the command's arguments.
const snapshotUsage = "snapshot --provider=ID --url=ADDRESS --page=SAVED.html [--dir=DIR] [--name=NAME] [--content-type=HEADER] [--publishers=DIR]"

// snapshotCommand makes a provider's snapshot of a saved page: the page as it is,
// and a JSON file with what the provider reads from it.
func snapshotCommand(_ context.Context, args []string, stdout, _ io.Writer) error {
	f := flag.NewFlagSet("snapshot", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	id := f.String("provider", "", "the provider's id")
	address := f.String("url", "", "the page's address")
	page := f.String("page", "", "the saved page, with its original bytes")
	dir := f.String("dir", "", "folder of the snapshot")
	name := f.String("name", "", "the snapshot's name without its extension")
	contentType := f.String("content-type", "", "the Content-Type header that came with the page")
	yamls := f.String("publishers", "", "directory with declarative publishers")
	if err := f.Parse(args); err != nil {
		return usage.Errorf("%s; use %s", err, snapshotUsage)
	}
	if f.NArg() > 0 || *id == "" || *address == "" || *page == "" {
		return usage.Errorf("use %s", snapshotUsage)
	}
	all := news.Registered()
	if *yamls != "" {
		declared, err := provider.ReadDeclarations(os.DirFS(*yamls))
		if err != nil {
			return usage.Errorf("--publishers: %w", err)
		}
		all = append(all, declared...)
	}
	i := slices.IndexFunc(all, func(p provider.Provider) bool { return p.ID() == *id })
	if i < 0 {
		var ids []string
		for _, p := range all {
			ids = append(ids, p.ID())
		}
		return usage.Errorf("--provider=%s: there is no such provider; use %s", *id, usage.Or(ids))
	}
	body, err := os.ReadFile(*page)
	if err != nil {
		return usage.Errorf("--page: %w", err)
	}
	if *dir == "" {
		*dir = filepath.Join("transforms", "news", *id, "testdata")
	}
	if *name == "" {
		*name = strings.TrimSuffix(filepath.Base(*page), filepath.Ext(*page))
	}
	s, err := provider.Take(all[i], body, *contentType, *address)
	if err != nil {
		return err
	}
	if err := s.Write(*dir, *name, body); err != nil {
		return err
	}
	at := filepath.Join(*dir, *name)
	_, err = fmt.Fprintf(stdout, "wrote %s.html and %s.json; check them before you rely on them:\n  title      %s\n  published  %s\n  body       %d characters\n",
		at, at, s.Article.Title, s.Article.Published, len([]rune(s.Article.Body)))
	return err
}
