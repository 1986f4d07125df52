package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
)

// The newest date that is done is compared with the one before: a date that is still open
// is left out.
func TestChangesOfSeed(t *testing.T) {
	emptyEnv(t)
	dir := t.TempDir()
	put := func(key, body string) { writeFile(t, filepath.Join(dir, filepath.FromSlash(key)), body) }
	domain := func(date, name, body string) {
		at := "processing/country=sg/category=news/date=" + date + "/" + name + "/domain_metadata.json"
		put(at, body)
		put(at+".success", "")
	}
	for _, date := range []string{"2026-01-21", "2026-01-28", "2026-02-04"} {
		raw := "datasets/country=sg/category=news/date=" + date + "/raw_0001.json"
		put(raw, "{}")
		if date != "2026-02-04" {
			put(raw+".success", "")
		}
	}
	answered := strings.Replace(document("b.sg"), `"status_code":0,"content_length":0,"exists":false,"error":"dns"`, `"status_code":200,"content_length":9,"exists":true`, 1)
	domain("2026-01-21", "a.sg", document("a.sg"))
	domain("2026-01-21", "b.sg", document("b.sg"))
	domain("2026-01-21", "same.sg", document("same.sg"))
	domain("2026-01-28", "b.sg", answered)
	domain("2026-01-28", "c.sg", document("c.sg"))
	domain("2026-01-28", "same.sg", document("same.sg"))
	domain("2026-02-04", "d.sg", document("d.sg"))

	a := here(t, "changes --job=seed --json --store="+dir)
	require.Equal(t, exitOK, a.code, a.stderr)
	require.ElementsMatch(t, []string{
		`{"kind":"gone","source":"sg/news/2026-01-21","item":"a.sg","what":""}`,
		`{"kind":"changed","source":"sg/news/2026-01-28","item":"b.sg","what":"robots.txt: dns -> 200, 0 sitemaps"}`,
		`{"kind":"new","source":"sg/news/2026-01-28","item":"c.sg","what":""}`,
	}, strings.Split(strings.TrimSpace(a.stdout), "\n"))
	a = here(t, "changes --job=seed --country=kr --store="+dir)
	require.Equal(t, exitOK, a.code, a.stderr)
	require.Contains(t, a.stderr, "nothing changed")
}

func TestChangesOfOtherJobs(t *testing.T) {
	emptyEnv(t)
	dir := filepath.Join(t.TempDir(), "s")
	require.NoError(t, os.Mkdir(dir, 0o755))
	for args, want := range map[string]string{
		"changes --job=migrate":              "use seed, docs, catalog or news",
		"changes --job=docs":                 "there is no run of the docs job in this store",
		"changes --job=catalog --country=sg": "--country and --category are for the seed job",
		"changes seed more":                  "write pipeline changes [JOB]",
	} {
		a := here(t, args+" --store="+dir)
		require.Equal(t, exitUsage, a.code, args)
		require.Contains(t, a.stderr, want)
	}
	base := "--job=catalog --web=demo --site=gadgets --log-level=error --store=" + dir
	require.Equal(t, exitOK, here(t, base).code)
	a := here(t, "changes --job=catalog --json --store="+dir)
	require.Equal(t, exitOK, a.code, a.stderr)
	require.Equal(t, 48, strings.Count(a.stdout, `"kind":"new","source":"gadgets"`))
	require.Equal(t, exitOK, here(t, base+" --demo-changes=1").code)
	a = here(t, "changes --job=catalog --store="+dir)
	require.Equal(t, exitOK, a.code, a.stderr)
	require.Equal(t, 4, strings.Count(a.stdout, "changed  gadgets  G-00"), a.stdout)
	require.NotContains(t, a.stdout, "new")

	var runs []string // oldest first
	s, err := store.Open(t.Context(), dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	for r, err := range ledger.List(t.Context(), s) {
		require.NoError(t, err)
		runs = append([]string{r.RunID}, runs...)
	}
	require.Len(t, runs, 2)
	a = here(t, "changes --job=catalog --json --diff="+runs[0]+".."+runs[1]+" --store="+dir)
	require.Equal(t, exitOK, a.code, a.stderr)
	require.Equal(t, `{"kind":"changed","site":"gadgets","product_key":"G-0010","url":"https://gadgets.example/shop/item/10","field":"price","was":"10.9","became":"10.91"}`, strings.Split(a.stdout, "\n")[0])
	require.Equal(t, 4, strings.Count(a.stdout, "\n"))
	a = here(t, "changes --job=catalog --diff="+runs[0]+".."+runs[1]+" --store="+dir)
	require.Contains(t, a.stdout, "changed  gadgets  G-0010   price  10.9  10.91")
	for diff, want := range map[string]string{
		runs[0]:                   "write two run ids",
		runs[0] + "..":            "write two run ids",
		runs[0] + "..nothing":     "there is no run nothing in this store",
		runs[1] + ".." + runs[0]:  "write the earlier one first",
		runs[1] + ".." + runs[1]:  "write the earlier one first",
		runs[0] + ".. --job=docs": "--diff is for the catalog job",
	} {
		a := here(t, "changes --job=catalog --diff="+diff+" --store="+dir)
		require.Equal(t, exitUsage, a.code, diff)
		require.Contains(t, a.stderr, want)
	}
}

// A page is new when its content is, whenever its address was found.
func TestChangesOfDocs(t *testing.T) {
	emptyEnv(t)
	dir := filepath.Join(t.TempDir(), "s")
	require.NoError(t, os.Mkdir(dir, 0o755))
	base := "--job=docs --web=demo --provider=toss-payments --log-level=error --store=" + dir
	kinds := func() map[string]int {
		t.Helper()
		a := here(t, "changes --job=docs --json --store="+dir)
		require.Equal(t, exitOK, a.code, a.stderr)
		n := map[string]int{}
		for l := range strings.Lines(a.stdout) {
			var c struct{ Kind, Item string }
			require.NoError(t, json.Unmarshal([]byte(l), &c))
			n[c.Kind]++
		}
		return n
	}
	require.Equal(t, exitOK, here(t, base+" --limit=3").code)
	require.Equal(t, map[string]int{"new": 3}, kinds())
	require.Equal(t, exitOK, here(t, base).code)
	require.Equal(t, map[string]int{"new": 8}, kinds())
	require.Equal(t, exitOK, here(t, base+" --demo-edition=2").code)
	require.Equal(t, map[string]int{"new": 1, "changed": 2, "gone": 1}, kinds())
}
