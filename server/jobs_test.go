package server

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/removal"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/transforms/docs/policies"
	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/parse/policyfile"
	"github.com/newsfork/seed-engine/transforms/parse/yamltext"
)

// knownToCommand are the jobs that cmd/server passes, written by `make golden`,
// because tests of the server do not link the jobs. TestJobsOfTheServer in
// pipeline/cli compares the file with the list of jobs.
//
//go:embed testdata/jobs.json
var knownToCommand []byte

// testJobs are the jobs that a server knows.
func testJobs() []option.Job {
	var all []option.Job
	if err := json.Unmarshal(knownToCommand, &all); err != nil {
		panic(err)
	}
	i := slices.IndexFunc(all, func(j option.Job) bool { return j.Name == docsJob })
	all[i].Policies = policy.Kind(func(dir string, now time.Time) ([]policy.Policy, error) {
		if dir != "" {
			return policy.Load(os.DirFS(dir), now)
		}
		return policy.Load(policies.Files, now)
	})
	all[i].Removal = &removal.What{Job: docsJob, Kind: "provider", Objects: removal.Under("handoff/docs/")}
	all[slices.IndexFunc(all, func(j option.Job) bool { return j.Name == "catalog" })].Policies = shops
	return all
}

const docsJob = "docs"

// shop is a policy of another kind than a provider's.
type shop struct {
	Name string `yaml:"name"`
	List struct {
		URL  string `yaml:"url"`
		Link string `yaml:"link"`
	} `yaml:"list"`
	Key string `yaml:"key"`
}

// shopFile is a shop and its text; one without a text is code.
type shopFile struct {
	shop
	text string
}

const teaHouse = "name: tea_house\nlist:\n  url: https://tea.example/\n  link: a\nkey: sku\n"

// shops are a kind of policies other than the providers; the one named code cannot be changed.
var shops = policyfile.Kind[shopFile]{
	Words: policyfile.Words{Job: "catalog", One: "site", Many: "sites", Key: "name", Flag: "sites", Schema: "Site", Blank: "name:\n",
		Needs: []string{"name"}, Example: `{"name": "lamps", "list": {"url": "https://lamps.example/"}, "key": "sku"}`, Try: []string{"try", "{page}", "{file}"}},
	Type: reflect.TypeFor[shop](),
	ID:   func(s shopFile) string { return s.Name },
	Read: func(text string, _ time.Time) (s shopFile, err error) {
		s.text = text
		if err = yamltext.Strict([]byte(text), &s.shop); err != nil {
			err = fmt.Errorf("parsing YAML: %w", err)
		} else if s.Key == "" {
			err = errors.New("key: it is missing")
		}
		if err != nil {
			return s, policyfile.Located(text, err)
		}
		return s, nil
	},
	Files: func(option func(string) string, _ time.Time) ([]shopFile, bool, error) {
		tea := shop{Name: "tea_house", Key: "sku"}
		tea.List.URL = "https://tea.example/"
		return []shopFile{{shop: shop{Name: "code"}}, {tea, teaHouse}}, option("sites") != "", nil
	},
	Show: func(s shopFile, _ time.Time) (policyfile.Shown, error) {
		if s.Name == "code" {
			return policyfile.Shown{State: "crawled", Locked: "it is code of the program"}, nil
		}
		fields, err := policyfile.Fields(s.text)
		return policyfile.Shown{Name: "Tea", State: "crawled", Text: s.text, Fields: fields, Addresses: []policyfile.Address{{Field: "list.url", URL: s.List.URL}}}, err
	},
}

// testJob is the one of that name.
func testJob(name string) ledger.Job {
	j, _ := known.JobsOf(testJobs()).Named(name)
	return j.Job.Job
}

// A job of the list appears wherever the server shows or starts jobs.
func TestToyJob(t *testing.T) {
	all := append(testJobs(), option.Job{Job: ledger.Job{Name: "toy", Title: "Toy", Path: "/api/v1/toy/runs", Done: "greetings", Counts: []string{"greetings", "silences"}, Alerts: []string{"duration"}}, Options: []option.Option{
		{Name: "greeting", Label: "Greeting", Usage: "What it says", Kind: option.Text, Pattern: "[a-z]+", Wrong: "say it in small letters"},
		{Name: "times", Label: "Times", Usage: "How often", Kind: option.Number, Min: new(1.), Max: new(1e6)},
		{Name: "mood", Label: "Mood", Usage: "How", Kind: option.Text, Choices: []string{"glad", "sad"}}}})
	_, err := ParseConfig([]byte("alerts: {toy: {duration: 1h}}\nschedules: [{name: hourly, job: toy, cron: '0 * * * *', options: {greeting: hi}}]\n"), all)
	require.NoError(t, err)
	_, err = ParseConfig([]byte("schedules: [{name: hourly, job: tic, cron: '0 * * * *'}]"), all)
	require.ErrorContains(t, err, "use seed, docs, catalog, news or toy")

	w := newWorld(t, "done", func(set *Settings) { set.Jobs = all })
	require.Contains(t, w.do("GET", "/start", "").body, `name="greeting"`)
	require.Contains(t, w.do("GET", "/start?job=toy&mood=sad", "").body, `<select id="toy-mood" name="mood"><option></option><option>glad</option><option selected>sad</option></select>`)
	require.Equal(t, http.StatusBadRequest, w.do("POST", "/api/v1/toy/runs", `{"greeting": "HI"}`).code)
	a := w.do("POST", "/api/v1/toy/runs", `{"greeting": "hi", "times": 2}`)
	require.Equal(t, http.StatusAccepted, a.code, a.body)
	w.ended("toy")
	require.Equal(t, http.StatusOK, w.do("GET", "/api/v1/runs?job=toy", "").code)
	require.Equal(t, http.StatusOK, w.do("GET", "/api/v1/dead-letters?job=toy", "").code)
	require.Contains(t, w.do("GET", "/api/v1/runs?job=tic", "").body, "news or toy")

	const active = "20260302-100000-000-cccccccc"
	require.NoError(t, ledger.Start(t.Context(), w.store, ledger.Run{RunID: active, Job: "toy", StartedAt: time.Now()}))
	require.Equal(t, map[string]any{"greetings": 0.0, "silences": 0.0}, w.do("GET", "/api/v1/runs/"+active, "").json(t)["counts"])
	require.Regexp(t, `(?s)greetings.*silences`, w.do("GET", "/runs/"+active, "", "Accept", "text/html").body)

	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
			RequestBody struct {
				Content map[string]struct {
					Schema map[string]string `json:"schema"`
				} `json:"content"`
			} `json:"requestBody"`
		} `json:"paths"`
		Components struct {
			Schemas map[string]struct {
				Properties map[string]map[string]any `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
	}
	text := w.do("GET", "/openapi.json", "").body
	require.NoError(t, json.Unmarshal([]byte(text), &doc))
	post := doc.Paths["/api/v1/toy/runs"]["post"]
	assert.Equal(t, "startToy", post.OperationID)
	assert.Equal(t, map[string]string{"$ref": "#/components/schemas/ToyRequest"}, post.RequestBody.Content["application/json"].Schema)
	assert.Equal(t, map[string]map[string]any{
		"greeting": {"type": "string", "pattern": "^(?:[a-z]+)$", "description": "What it says"},
		"times":    {"type": "integer", "minimum": 1.0, "maximum": 1e6, "description": "How often"},
		"mood":     {"type": "string", "enum": []any{"glad", "sad"}, "description": "How"},
	}, doc.Components.Schemas["ToyRequest"].Properties)
	var enums struct {
		Paths map[string]struct {
			Get struct {
				Parameters []struct {
					Name   string `json:"name"`
					Schema struct {
						Enum []string `json:"enum"`
					} `json:"schema"`
				} `json:"parameters"`
			} `json:"get"`
		} `json:"paths"`
	}
	require.NoError(t, json.Unmarshal([]byte(text), &enums))
	for _, path := range []string{"/api/v1/runs", "/api/v1/dead-letters"} {
		for _, p := range enums.Paths[path].Get.Parameters {
			if p.Name == "job" {
				assert.Contains(t, p.Schema.Enum, "toy", path)
			}
		}
	}
}
