package reference

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// parts are the folders of the programs, without what only tests and the demo use.
var parts = []string{"cmd", "io", "pipeline", "server", "transforms"}

var notProgram = regexp.MustCompile(`/(testdata|e2etest|\w+test|\w+sim|reference)(/|$)`)

// source is a file of the programs.
type source struct {
	folder string // from the module's root
	file   *ast.File
	at     func(token.Pos) string
}

var parsed []source

// program parses the files of the programs, once.
func program(t *testing.T) []source {
	t.Helper()
	for _, part := range parts {
		if len(parsed) > 0 && part == parts[0] {
			break
		}
		require.NoError(t, filepath.WalkDir("../../"+part, func(path string, d fs.DirEntry, err error) error {
			folder := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../../")
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || notProgram.MatchString(folder) {
				return err
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			parsed = append(parsed, source{folder, file, func(p token.Pos) string { return set.Position(p).String() }})
			return err
		}))
	}
	require.Greater(t, len(parsed), 200)
	return parsed
}

func literal(e ast.Expr) (string, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(l.Value)
	return text, err == nil
}

// levels are the methods of a logger, with the place of the message among their arguments.
var levels = map[string]int{"Debug": 0, "Info": 0, "Warn": 0, "Error": 0, "DebugContext": 1, "InfoContext": 1, "WarnContext": 1, "ErrorContext": 1, "Log": 2, "LogAttrs": 2}

// unnamed are the functions that log events whose names are values, with the level, name
// and fields of each. Those without any log what one of wrappers is called with, or no
// events.
var unnamed = map[string][]string{
	"pipeline/launch notice":        nil,
	"pipeline/launch Log":           nil, // errors of Beam, in its own words
	"server/alarm announce":         nil,
	"io/ledger LogLeaseEvent":       {"warn lease_unsure lease error effect", "warn lease_renewed lease error unsure_s", "error lease_lost lease error"},
	"transforms/news/engine failed": {"warn KIND url error"},
}

// wrappers are the functions that are called with the name of an event: the place of the
// name, the event's level, and its fields, or else the place of the first one.
var wrappers = map[string]struct {
	at, from int
	level    string
	fields   []string
}{
	"notice":   {2, 4, "info", nil},
	"announce": {0, 0, "warn", []string{"job", "alert", "provider", "run_id", "text"}},
}

type event struct {
	levels, fields, folders map[string]bool
}

// events are what the programs log, by name.
func events(t *testing.T) map[string]event {
	t.Helper()
	all := map[string]event{}
	add := func(name, level, folder string, fields []string) {
		e, ok := all[name]
		if !ok {
			e = event{map[string]bool{}, map[string]bool{}, map[string]bool{}}
			all[name] = e
		}
		e.levels[level], e.folders[folder] = true, true
		for _, f := range fields {
			e.fields[f] = true
		}
	}
	used := map[string]bool{}
	for _, s := range program(t) {
		for _, d := range s.file.Decls {
			within, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			in := s.folder + " " + within.Name.Name
			ast.Inspect(within, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				if w, ok := wrappers[called(call)]; ok && len(call.Args) > w.at {
					if name, isText := literal(call.Args[w.at]); isText {
						add(name, w.level, s.folder, append(keys(call.Args, w.from), w.fields...))
						return true
					}
				}
				f, ok := call.Fun.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				at, isLevel := levels[f.Sel.Name]
				if !isLevel || len(call.Args) <= at {
					return true
				}
				name, isText := literal(call.Args[at])
				if !logger(f.X) {
					require.NotRegexp(t, `^[a-z]+(_[a-z]+)+$`, name, "%s: is this a logger? then function logger of this test must know it", s.at(call.Pos()))
					return true
				}
				if names, known := unnamed[in]; known && !isText {
					used[in] = true
					for _, event := range names {
						words := strings.Fields(event)
						add(words[1], words[0], s.folder, words[2:])
					}
					return true
				}
				require.True(t, isText, "%s: the name of this event is a value; list its values in this test", s.at(call.Pos()))
				level := strings.ToLower(strings.TrimSuffix(f.Sel.Name, "Context"))
				if at == 2 {
					level = "info, warn"
				}
				add(name, level, s.folder, keys(call.Args, at+1))
				return true
			})
		}
	}
	require.Len(t, used, len(unnamed), "what is in unnamed and logs nothing? %v", used)
	return all
}

// called is the name of a function or method that is called.
func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// keys are the names of the fields of an event, as far as they are written out.
func keys(args []ast.Expr, from int) (names []string) {
	for i := from; i > 0 && i < len(args); i += 2 {
		name, ok := literal(args[i])
		if !ok {
			break
		}
		names = append(names, name)
	}
	return names
}

// logger reports whether an expression is a *slog.Logger, by its name.
func logger(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return slices.Contains([]string{"log", "slog", "l", "Log", "logger", "to"}, e.Name)
	case *ast.SelectorExpr:
		return slices.Contains([]string{"log", "Log", "to", "quiet", "logger"}, e.Sel.Name)
	case *ast.CallExpr:
		name := called(e)
		return name == "With" || name == "Default" || strings.Contains(strings.ToLower(name), "log")
	}
	return false
}

func join(set map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(set)), ", ") }

// TestLogEvents keeps the page of the events that the programs log.
func TestLogEvents(t *testing.T) {
	all := events(t)
	w := table{page: "log-events.md", name: "events", byHand: true}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		e := all[name]
		w.rows = append(w.rows, []string{code(name), join(e.levels), join(e.fields)})
	}
	w.check(t)
}
