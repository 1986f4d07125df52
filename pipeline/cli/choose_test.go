package cli

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// --provider, --publisher and --site choose what a run crawls.
func TestChoose(t *testing.T) {
	emptyEnv(t)
	for args, want := range map[string]string{
		"--job=docs --provider=toss-payments,paypal,paypal": `{"providers":2}`,
		"--job=news --publisher=demo-local":                 `{"providers_run":1}`,
		"--job=catalog --site=gadgets":                      `{"sites":1}`,
	} {
		file := filepath.Join(t.TempDir(), "report.json")
		got := here(t, args+" --web=demo --store="+t.TempDir()+" --report="+file)
		require.Equal(t, exitOK, got.code, got.stderr)
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		r := report(t, b)
		var counts map[string]int64
		require.NoError(t, json.Unmarshal([]byte(want), &counts))
		for name, n := range counts {
			assert.Equal(t, n, r.Counts[name], "%s: %s", args, name)
		}
	}
}

// A name that nothing has gets the list of what there is.
func TestChooseUnknown(t *testing.T) {
	emptyEnv(t)
	disabled := filepath.Join(t.TempDir(), "news.conf")
	require.NoError(t, os.WriteFile(disabled, []byte("providers: {mk: {enabled: false}}\n"), 0o600))
	many := t.TempDir()
	for _, n := range strings.Split("abcdefghijklmnopqrstuvw", "") {
		require.NoError(t, os.WriteFile(filepath.Join(many, n+".yaml"), []byte("id: paper-"+n+n+"\npress: P\nbaseUrl: https://a.example/"+n+"\narticleUrl: x\n"), 0o600))
	}
	for args, want := range map[string]string{
		"--job=docs --provider=strip":                                       "--provider=strip: there is no such provider; known are anthropic, auth0, ",
		"--job=docs --provider=stripe,":                                     "--provider=: there is no such provider",
		"--job=docs --provider=srtipe":                                      "; did you mean stripe?",
		"--job=docs --provider=":                                            "--provider= is empty; name providers, or leave it out for all",
		"--job=docs --provider=toss-payments --explain=https://a.example":   "--explain is not limited to providers; leave --provider out",
		"--job=docs --provider=toss-payments --handoff-again=toss-payments": "leave --provider out",
		"--job=news --publisher=kh":                                         "there is no such enabled publisher; known are hankyung, mk",
		"--job=news --publisher=mk --news-config=" + disabled:               "there is no such enabled publisher; known are hankyung",
		"--job=news --publisher=paper-gx --publishers=" + many:              "the most similar of 23 are paper-gg, paper-aa, ",
		"--job=news --publisher=mk --purge-expired":                         "leave --publisher out",
		"--job=catalog --web=demo --site=x":                                 "--site=x: there is no such site; known are gadgets, matter",
		"--job=catalog --web=demo --site=matter --history=matter":           "leave --site out",
		"--job=seed --country=":                                             "--country= is empty; name a country, or leave it out for all",
		"--job=migrate --dry-run=false --delete-verified --category=":       "--category= is empty; name a category, or leave it out for all",
		"--job=seed --date=":                                                "--date= is empty; name a day, or leave it out for all",
		"--job=seed --site=x":                                               "--site means nothing to --job=seed",
	} {
		resetBeam(t)
		_, err := parseOptions(append(strings.Fields(args), "--store="+t.TempDir()), io.Discard)
		assert.ErrorContains(t, err, want, args)
	}
}
