package pipeline

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stretchr/testify/assert"
)

const module = "github.com/newsfork/seed-engine"

// jobFolder returns the job's folder in transforms/ to which dir belongs; "" for
// a package that the jobs share.
func jobFolder(dir string) string {
	parts := strings.Split(dir, "/")
	if len(parts) < 2 || parts[0] != "transforms" || slices.Contains([]string{"lane", "parse", "site"}, parts[1]) {
		return ""
	}
	return path.Join(parts[:2]...)
}

// isDemo reports whether dir has the simulated sites of a job for --web=demo.
func isDemo(dir string) bool { return jobFolder(dir) != "" && strings.HasSuffix(dir, "sim") }

// impure are the packages of transforms/ that use Beam, io/, the clock or files,
// next to the jobs' own stages and simulated sites; every other one is pure.
var impure = []string{"transforms/lane", "transforms/lane/lanetest", "transforms/docs/asked", "transforms/docs/pdf", "transforms/news/engine", "transforms/news/raw", "transforms/news/provider", "transforms/news/provider/providertest", "transforms/news/hankyung", "transforms/news/mk", "transforms/parse/cases", "transforms/parse/hostile", "transforms/lane/permit", "transforms/lane/images",
	"transforms/seed/domaintable"}

// layers of pipeline/, the upper ones first: each may import those below it.
var layers = []string{"pipeline/cli", "pipeline/launch", "pipeline/export", "pipeline", "pipeline/estimate", "pipeline/option", "pipeline/usage"}

// serverLayers of server/, the upper ones first: each may import those below it.
var serverLayers = []string{"server", "server/face", "server/people", "server/alarm", "server/schedule", "server/runs", "server/known"}

// knowsNoJob reports whether a package of pipeline/ works on any pipeline.Job.
func knowsNoJob(dir string) bool {
	return slices.ContainsFunc([]string{"pipeline/cli", "pipeline/launch", "pipeline/export"}, func(of string) bool { return under(dir, of) })
}

// pureIO are the packages of io/ that only read and write text.
var pureIO = []string{"io/columnar", "io/store/hive", "io/untrusted", "io/web/robots"}

// pureStd are the standard packages that would let the world into a pure
// package. (net/url and net/netip only read text.)
var pureStd = []string{"net", "net/http", "os", "os/exec", "log", "log/slog", "syscall"}

// pureModules are roots of modules that do the same.
var pureModules = []string{"github.com/apache/beam", "gocloud.dev", "github.com/aws", "cloud.google.com", "google.golang.org/grpc"}

// clock are the functions of package time that read the clock or wait.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

func under(dir, folder string) bool { return dir == folder || strings.HasPrefix(dir, folder+"/") }

func isPure(dir string) bool {
	return under(dir, "transforms") && dir != jobFolder(dir) && !isDemo(dir) && !slices.Contains(impure, dir) || slices.Contains(pureIO, dir)
}

// breach returns the rule that is broken when the package in folder dir imports
// imported, with the reason for the rule; "" when no rule is broken.
func breach(dir, imported string) string {
	ours, isOurs := strings.CutPrefix(imported, module+"/")
	if isPure(dir) {
		switch {
		case isOurs && !isPure(ours):
			return "a pure package imports only pure packages: it is tested by tables and used by every job, so it must not bring a store, a client or Beam along"
		case slices.Contains(pureStd, imported), slices.ContainsFunc(pureModules, func(m string) bool { return under(imported, m) }):
			return "a pure package has no Beam, no network, no files and no log: it returns what happened, and its caller logs it"
		}
	}
	if under(dir, "server") && under(imported, "github.com/apache/beam") {
		return "a server starts runs as programs of their own; without Beam it is small and its tests are quick to link"
	}
	if !isOurs {
		if under(imported, "github.com/modelcontextprotocol") && dir != "cmd/search" {
			return "language models ask cmd/search"
		}
		return ""
	}
	if isDemo(ours) && !under(dir, "pipeline") {
		return "the simulated sites are for tests and for --web=demo, which pipeline/ starts"
	}
	if under(ours, "cmd/search") && !under(dir, "cmd/search") {
		return "search is a program of its own: the crawler links nothing of it, and it learns of removals by io/removal"
	}
	switch {
	case under(dir, "cmd/search"):
		if !under(ours, "cmd/search") && !under(ours, "io") && !isPure(ours) && !slices.Contains([]string{"pipeline/option", "pipeline/usage", "transforms/docs/asked"}, ours) {
			return "search reads what the docs job handed over and its database, and links neither jobs nor Beam"
		}
	case under(dir, "cmd"):
		if !under(ours, "pipeline") && !under(ours, "server") {
			return "a command is flags and start-up only; what it does belongs in pipeline/ or server/, where tests reach it"
		}
	case under(dir, "server"):
		if from, to := slices.Index(serverLayers, dir), slices.Index(serverLayers, ours); to >= 0 {
			if from < to {
				return ""
			}
			return "arrows run server to server/face to server/people to server/alarm to server/schedule to server/runs to server/known, and never back"
		}
		if !under(ours, "io") && (!isPure(ours) || jobFolder(ours) != "") && ours != "pipeline/option" {
			return "a server reads and writes what runs leave in the store, and knows no job's code"
		}
	case under(dir, "pipeline"):
		if under(ours, "cmd") || under(ours, "server") && !under(dir, "pipeline/e2etest") {
			return "pipeline/ is below cmd/, and starts without a server"
		}
		if from, to := slices.Index(layers, dir), slices.Index(layers, ours); from >= 0 && to >= 0 && to < from {
			return "arrows run pipeline/cli to pipeline/launch to the jobs, and never back: a job knows no command line, and a run no flags"
		}
		if knowsNoJob(dir) && jobFolder(ours) != "" {
			return "what is launched, exported and listed is a pipeline.Job, whichever it is: what a job finds is told by its Rows, what it keeps by its Removal"
		}
	case isDemo(dir):
		if !under(ours, "io/web/webtest") {
			return "the simulated sites stand apart, so that they cannot share a mistake with the job they are made for"
		}
	case under(dir, "transforms"):
		if !under(ours, "transforms") && !under(ours, "io") {
			return "transforms/ is what is done to data: it knows io/ and the pure packages, not the jobs made of it"
		}
		if under(ours, "io/web/webtest") {
			return "the simulated web is for tests and for --web=demo, which pipeline/ starts"
		}
		if of := jobFolder(ours); of != "" && of != jobFolder(dir) {
			return "a job's own package is used by that job and pipeline/ alone; what two jobs share goes to transforms/lane or transforms/parse"
		}
	case under(dir, "io/web/webtest"):
		return "the simulated web stands apart, so that it cannot share a mistake with the client it tests"
	case under(dir, "io"):
		if !under(ours, "io") {
			return "io/ is the outside world: it is below everything else, so a store or a client can be used without a job"
		}
		if under(ours, "io/web/webtest") {
			return "the simulated web is for tests and for --web=demo, which pipeline/ starts"
		}
	case under(dir, "deploy"):
		return "deploy/notice reads what the programs link, and is no part of them"
	case under(dir, "testdata"):
		return "testdata/ is data; its one Go file embeds the sample bucket, which Go allows no other folder to do"
	}
	return ""
}

// TestImportRules reads the imports of every package and compares them with
// the rules of docs/architecture.md. It parses sources instead of asking the go command,
// so that the test cache sees every file it depends on.
func TestImportRules(t *testing.T) {
	packages := map[string]bool{}
	err := filepath.WalkDir("..", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		dir := strings.TrimPrefix(path.Dir(filepath.ToSlash(p)), "../")
		if d.IsDir() {
			if name := d.Name(); p != ".." && (strings.HasPrefix(name, ".") || name == "out") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		packages[dir] = true
		if dir == "io" || dir != "testdata" && !slices.ContainsFunc([]string{"cmd", "pipeline", "server", "transforms", "io", "deploy"}, func(r string) bool { return under(dir, r) }) {
			t.Errorf("%s: no package belongs here; the folders for packages are cmd, pipeline, server, transforms, io (in folders of its own, so that its name never shadows the standard library's) and deploy", p)
		}
		for _, b := range fileBreaches(t, p, dir) {
			t.Error(b)
		}
		return nil
	})
	require.NoError(t, err)
	for _, want := range []string{"cmd/pipeline", "pipeline/cli", "pipeline/launch", "pipeline", "pipeline/usage", "transforms/seed", "io/web/robots", "io/store/hive", "io/web/webtest"} {
		assert.True(t, packages[want], "no package in %s: was it moved? then these rules check nothing", want)
	}
}

func fileBreaches(t *testing.T, file, dir string) []string {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	var out []string
	for _, im := range f.Imports {
		imported, err := strconv.Unquote(im.Path.Value)
		require.NoError(t, err)
		if imported == "net/http" && sniffsOnly(f) {
			continue
		}
		if why := breach(dir, imported); why != "" {
			out = append(out, fmt.Sprintf("%s imports %s: %s", set.Position(im.Pos()), imported, why))
		}
	}
	if under(dir, "transforms") || under(dir, "pipeline") || under(dir, "cmd") {
		for _, sel := range sends(f, under(dir, "transforms") && !isDemo(dir)) {
			out = append(out, fmt.Sprintf("%s: %s: a job sends its requests through io/web/polite, which obeys robots.txt and paces them", set.Position(sel.Pos()), sel.Sel.Name))
		}
	}
	// io/store/bucket takes the default client for an endpoint for which there are no keys.
	if under(dir, "io") && !strings.HasSuffix(dir, "test") && !slices.Contains([]string{"io/secret", "io/store/bucket"}, dir) || under(dir, "server") {
		for _, sel := range clients(f) {
			out = append(out, fmt.Sprintf("%s: http.%s: take secret.Client, which follows no redirect with a credential, or the web client", set.Position(sel.Pos()), sel.Sel.Name))
		}
	}
	if !isPure(dir) {
		return out
	}
	ast.Inspect(f, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clock, sel.Sel.Name) {
			out = append(out, fmt.Sprintf("%s: time.%s: a pure package has no clock; take the time as an argument", set.Position(sel.Pos()), sel.Sel.Name))
		}
		return true
	})
	return out
}

// sends returns where a file sends an HTTP request other than by package polite: by
// the web client, which visits have as a field Web, or, if strict, by net/http or net.
func sends(f *ast.File, strict bool) (out []*ast.SelectorExpr) {
	own := map[string][]string{
		"http": {"Get", "Head", "Post", "PostForm", "Client", "DefaultClient", "Transport", "DefaultTransport", "NewRequest", "NewRequestWithContext"},
		"net":  {"Dial", "DialTimeout", "Dialer", "DialTCP"},
		"tls":  {"Dial", "Dialer"},
	}
	ast.Inspect(f, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		switch x := sel.X.(type) {
		case *ast.Ident:
			if strict && slices.Contains(own[x.Name], sel.Sel.Name) {
				out = append(out, sel)
			}
		case *ast.SelectorExpr:
			if x.Sel.Name == "Web" && slices.Contains([]string{"Get", "Try"}, sel.Sel.Name) {
				out = append(out, sel)
			}
		}
		return true
	})
	return out
}

// clients returns where a file makes a client of net/http, or takes the one that follows redirects.
func clients(f *ast.File) (out []*ast.SelectorExpr) {
	ast.Inspect(f, func(n ast.Node) bool {
		of := n
		if literal, ok := n.(*ast.CompositeLit); ok {
			of = literal.Type
		}
		sel, ok := of.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := sel.X.(*ast.Ident)
		if ok && x.Name == "http" && (of != n && sel.Sel.Name == "Client" || slices.Contains([]string{"DefaultClient", "Get", "Post", "PostForm", "Head"}, sel.Sel.Name)) {
			out = append(out, sel)
		}
		return true
	})
	return out
}

func TestSends(t *testing.T) {
	for source, broken := range map[string]bool{
		`w.Web.Get(ctx, r)`:           true,
		`c.w.Web.Try(ctx, r)`:         true,
		`http.Get(at)`:                true,
		`http.DefaultClient.Do(r)`:    true,
		`net.Dial("tcp", at)`:         true,
		`c.client.Get(ctx, r)`:        false,
		`resp.Header.Get("Location")`: false,
		`c.Web.Retried()`:             false,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "a.go", "package a\n\nfunc f() { "+source+" }\n", parser.SkipObjectResolution)
		require.NoError(t, err)
		assert.Equal(t, broken, len(sends(f, true)) > 0, source)
	}
}

// sniffsOnly reports whether a file uses nothing of net/http but the detection of
// content types by the WHATWG's rules, which only reads bytes.
func sniffsOnly(f *ast.File) bool {
	only := true
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "http" && sel.Sel.Name != "DetectContentType" {
				only = false
			}
		}
		return true
	})
	return only
}

func TestBreach(t *testing.T) {
	for _, c := range []struct {
		dir, imported string
		broken        bool
	}{
		{"cmd/pipeline", module + "/pipeline", false},
		{"cmd/pipeline", module + "/io/store", true},
		{"cmd/server", module + "/server", false},
		{"cmd/search", module + "/cmd/search/index", false},
		{"cmd/search", module + "/transforms/docs/policy", false},
		{"cmd/search", module + "/transforms/docs/asked", false},
		{"cmd/search", module + "/transforms/docs", true},
		{"cmd/search", module + "/pipeline/launch", true},
		{"cmd/search/index", module + "/io/db", false},
		{"pipeline/cli", module + "/cmd/search/index", true},
		{"transforms/docs", module + "/cmd/search/index", true},
		{"server", module + "/cmd/search/embed", true},
		{"pipeline/cli", "github.com/modelcontextprotocol/go-sdk/mcp", true},
		{"pipeline", module + "/transforms/seed", false},
		{"pipeline", module + "/transforms/docs/docsim", false},
		{"pipeline", module + "/cmd/pipeline", true},
		{"pipeline", module + "/server", true},
		{"pipeline/cli", module + "/pipeline/launch", false},
		{"pipeline/cli", module + "/pipeline", false},
		{"pipeline/launch", module + "/pipeline", false},
		{"pipeline/launch", module + "/pipeline/usage", false},
		{"pipeline/launch", module + "/pipeline/cli", true},
		{"pipeline/launch", module + "/transforms/lane", false},
		{"pipeline/launch", module + "/transforms/seed", true},
		{"pipeline/export", module + "/transforms/catalog", true},
		{"pipeline/export", module + "/pipeline", false},
		{"pipeline/cli", module + "/transforms/docs", true},
		{"pipeline/cli", module + "/transforms/news/raw", true},
		{"server", module + "/transforms/docs/chunk", true},
		{"pipeline", module + "/pipeline/usage", false},
		{"pipeline", module + "/pipeline/launch", true},
		{"pipeline", module + "/pipeline/cli", true},
		{"pipeline/usage", module + "/pipeline", true},
		{"transforms/toy", module + "/transforms/lane", false},
		{"transforms/toy", module + "/transforms/seed", true},
		{"transforms/toy/toysim", module + "/transforms/toy", true},
		{"server", module + "/io/ledger", false},
		{"server", module + "/server/known", false},
		{"server/schedule", module + "/server/alarm", true},
		{"server/people", module + "/server/face", true},
		{"server/face", module + "/transforms/docs/policy", true},
		{"server/alarm", module + "/server/schedule", false},
		{"server/runs", module + "/pipeline/option", false},
		{"server", module + "/transforms/parse/yamltext", false},
		{"server", module + "/transforms/lane", true},
		{"server", module + "/pipeline", true},
		{"server", "github.com/apache/beam/sdks/v2/go/pkg/beam", true},
		{"transforms/seed", module + "/io/web", false},
		{"transforms/seed", module + "/transforms/seed/domain", false},
		{"transforms/seed", module + "/transforms/docs/content", true},
		{"transforms/seed", module + "/pipeline", true},
		{"transforms/seed", module + "/io/web/webtest", true},
		{"transforms/docs", module + "/transforms/docs/docsim", true},
		{"transforms/lane", module + "/transforms/seed", true},
		{"transforms/parse/feed", module + "/transforms/parse/charset", false},
		{"transforms/parse/feed", module + "/transforms/lane", true},
		{"transforms/parse/feed", module + "/transforms/news/provider", true},
		{"io/web/robots", module + "/io/untrusted", false},
		{"io/web/robots", module + "/io/store", true},
		{"io/web/robots", "github.com/apache/beam/sdks/v2/go/pkg/beam", true},
		{"io/web/robots", "net/http", true},
		{"io/web/robots", "net/url", false},
		{"io/web/robots", "log/slog", true},
		{"io/web", module + "/io/web/robots", false},
		{"io/web", module + "/transforms/parse/charset", true},
		{"io/web", module + "/io/web/webtest", true},
		{"io/web/webtest", module + "/io/web", true},
		{"transforms/docs/docsim", module + "/io/web/webtest", false},
		{"transforms/docs/docsim", module + "/transforms/docs/content", true},
		{"io/store", module + "/io/store/hive", false},
		{"io/store/hive", module + "/io/store", true},
		{"testdata", module + "/io/store", true},
		{"deploy/notice", module + "/pipeline", true},
		{"deploy/notice", "encoding/json", false},
	} {
		why := breach(c.dir, c.imported)
		assert.Equal(t, c.broken, why != "", "%s importing %s: broken is %t, want %t (%s)", c.dir, c.imported, why != "", c.broken, why)
	}
}
