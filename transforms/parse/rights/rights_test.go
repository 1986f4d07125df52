package rights

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/untrusted"
	"github.com/newsfork/seed-engine/transforms/parse/cases"
)

var at = time.Date(2026, 11, 27, 1, 2, 3, 4e6, time.UTC)

// short is what a ledger says in the form of the cases.
type short struct {
	Says     []string
	Verdicts string
}

func shortOf(r Rights) short {
	s := short{Says: []string{}}
	for _, one := range r.Statements {
		s.Says = append(s.Says, fmt.Sprintf("%d|%s|%s", one.Line, one.Says, one.Only))
	}
	for _, p := range Purposes {
		s.Verdicts += strings.ToUpper(r.Verdicts.Of(p)[:1])
	}
	return s
}

// The cases are written from the texts that they name.
func TestCases(t *testing.T) {
	text, err := os.ReadFile("testdata/cases.jsonl")
	require.NoError(t, err)
	n := 0
	for line := range bytes.Lines(text) {
		var c struct {
			short
			From, Robots, URL, Agent, Page string
			Header                         map[string][]string
			Status                         int
			Site                           bool
		}
		require.NoError(t, json.Unmarshal(line, &c))
		n++
		if c.Agent == "" {
			c.Agent = "mybot"
		}
		l, source := Ledger{Agent: c.Agent + "/1.0 (+https://a.example)"}, "https://a.example/robots.txt"
		if bytes.Contains(line, []byte(`"robots":`)) {
			l.robots(source, []byte(c.Robots), false, at)
		} else {
			source = "https://a.example/page"
			if c.URL = source; c.Site {
				c.URL = ""
			}
			l.Answer(source, c.Status, c.Header, []byte(c.Page), at)
			l.HTML([]byte(c.Page))
		}
		got := l.Rights(c.URL)
		assert.Equal(t, c.short, shortOf(got), "%s", line)
		for _, s := range got.Statements {
			require.Equal(t, source, s.Source)
			require.NotEmpty(t, s.Raw)
		}
	}
	require.GreaterOrEqual(t, n, 150)
}

// The list names its sources, and only purposes that there are.
func TestAgents(t *testing.T) {
	rows := 0
	for line := range strings.Lines(agentsText) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		rows++
		row := strings.Split(strings.TrimSpace(line), "\t")
		require.Len(t, row, 5, line)
		require.True(t, strings.HasPrefix(row[3], "https://"), line)
		_, err := time.Parse(time.DateOnly, row[4])
		require.NoError(t, err, line)
		for _, p := range strings.Fields(row[1]) {
			require.Contains(t, Purposes, Purpose(p), line)
		}
	}
	require.Len(t, agents(), rows)
}

// Each statement has its line as written, its place, and the hash and time of the document.
func TestProof(t *testing.T) {
	l := Ledger{Agent: "mybot"}
	l.robots("https://a.example/robots.txt", []byte("User-agent: GPTBot\nUser-agent: CCBot\nDisallow: / # all\n"), false, at)
	got := l.Rights("")
	require.Equal(t, "2026-11-27T01:02:03.004Z", got.Documents[0].At)
	require.Len(t, got.Documents[0].SHA256, 64)
	require.Equal(t, "Disallow: / # all", got.Statements[0].Raw)
	require.Equal(t, []string{"GPTBot", "CCBot"}, got.Statements[0].Agents)
	text, err := json.Marshal(got)
	require.NoError(t, err)
	require.Contains(t, string(text), `"statements":[{"source":"https://a.example/robots.txt","line":3,"raw":"Disallow: / # all","says":"ai-train=reserved archive=reserved","agents":["GPTBot","CCBot"]}],"verdicts":{"search":"unsaid","ai-input":"unsaid","ai-train":"reserved","archive":"reserved"}`)
}

// However much a site says, what is kept is bounded and clean, and every statement counts for the verdicts.
func TestBounds(t *testing.T) {
	l := Ledger{Agent: "mybot"}
	l.unread("a\x00\u202ewall")
	l.robots("https://a.example/robots.txt", []byte("User-agent: *\n"+strings.Repeat("Content-Signal: search=yes\u202e, "+strings.Repeat("x", 500)+"\n", 100)+"Content-Signal: ai-train=no\n"), false, at)
	got := l.Rights("")
	require.Len(t, got.Statements, maxStatements)
	require.Equal(t, 101-maxStatements, got.More)
	require.Equal(t, Reserved, got.Verdicts.AITrain)
	require.Equal(t, untrusted.Line(got.Why, maxRaw), got.Why)
	require.LessOrEqual(t, len(got.Statements[0].Raw), maxRaw)
}

// A second reader in another language finds the same in the real files and in the files of other parsers' tests.
func TestAgainstASecondReader(t *testing.T) {
	type row struct {
		Robots    string
		RobotsB64 []byte `json:"robots_b64"`
	}
	seen, bodies := map[string]bool{}, [][]byte{}
	for _, file := range []string{"robots/robots_cases.jsonl", "robots/robots_doubtful.jsonl"} {
		for _, r := range cases.Rows[row](t, file) {
			body := r.RobotsB64
			if body == nil {
				body = []byte(r.Robots)
			}
			if !seen[string(body)] {
				seen[string(body)] = true
				bodies = append(bodies, body)
			}
		}
	}
	own, err := os.ReadFile("testdata/cases.jsonl")
	require.NoError(t, err)
	for line := range bytes.Lines(own) {
		var r row
		require.NoError(t, json.Unmarshal(line, &r))
		bodies = append(bodies, []byte(r.Robots))
	}
	var in bytes.Buffer
	for _, b := range bodies {
		fmt.Fprintf(&in, "{\"robots_b64\": %q, \"agent\": \"mybot\"}\n", base64.StdEncoding.EncodeToString(b))
	}
	cmd := exec.CommandContext(t.Context(), "python3", "testdata/robots.py", "agents.tsv")
	cmd.Stdin, cmd.Stderr = &in, os.Stderr
	out, err := cmd.Output()
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("there is no Python: %v", err)
	}
	require.NoError(t, err)
	lines, said := bufio.NewScanner(bytes.NewReader(out)), 0
	lines.Buffer(nil, 16<<20)
	for _, b := range bodies {
		require.True(t, lines.Scan())
		var theirs struct {
			Says     [][3]any
			Verdicts string
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &theirs))
		want := short{Says: []string{}, Verdicts: theirs.Verdicts}
		for _, s := range theirs.Says {
			want.Says = append(want.Says, fmt.Sprintf("%v|%s|%s", s[0], s[1], untrusted.Line(s[2].(string), maxOnly)))
		}
		l := Ledger{Agent: "mybot"}
		l.robots("https://a.example/robots.txt", b, false, at)
		got := shortOf(l.Rights(""))
		said += len(got.Says)
		want.Says = want.Says[:min(len(want.Says), maxStatements)]
		if !slices.Equal(want.Says, got.Says) || want.Verdicts != got.Verdicts {
			t.Errorf("%.1500q\nsecond reader: %v\ngot: %v", b, want, got)
		}
	}
	t.Logf("%d files, %d statements", len(bodies), said)
	require.Greater(t, said, 150)
}

func FuzzLedger(f *testing.F) {
	f.Add("User-agent: *\nContent-Signal: /a search=yes,ai-train=no\nLicense: https://a.example/l\n", "noindex, max-snippet:0", `<link rel=license><meta name=robots content=noai><p data-nosnippet>`)
	f.Fuzz(func(t *testing.T, text, tag, page string) {
		l := Ledger{Agent: "mybot"}
		l.robots("https://a.example/robots.txt", []byte(text), true, at)
		l.Answer("https://a.example/", 402, map[string][]string{"X-Robots-Tag": {tag}, "Link": {tag}, "Tdm-Reservation": {tag}}, nil, at)
		l.HTML([]byte(page))
		for _, of := range []string{"", "https://a.example/"} {
			r := l.Rights(of)
			for _, s := range r.Statements {
				if s.Raw != untrusted.Line(s.Raw, maxRaw) || s.Says == "" || len(s.Only) > maxOnly || s.Line < 0 {
					t.Errorf("%+v", s)
				}
			}
			for _, p := range Purposes {
				if !slices.Contains([]string{Allowed, Reserved, Unsaid, Contradictory}, r.Verdicts.Of(p)) {
					t.Errorf("%s: %q", p, r.Verdicts.Of(p))
				}
			}
		}
	})
}

func BenchmarkRobots(b *testing.B) {
	few := "User-agent: *\nDisallow: /admin/\nDisallow: /search?\nAllow: /admin/public/\n\nUser-agent: BadBot\nDisallow: /\n\nSitemap: https://a.example/sitemap.xml\n"
	many := strings.Repeat("User-agent: GPTBot\nDisallow: /\n\n", 20) + "User-agent: *\nContent-Signal: search=yes,ai-train=no\n" + strings.Repeat("Disallow: /private/*/x\n", 100)
	for name, text := range map[string]string{"few": few, "many": many} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				l := Ledger{Agent: "mybot"}
				l.robots("https://a.example/robots.txt", []byte(text), false, at)
				l.Rights("")
			}
		})
	}
}
