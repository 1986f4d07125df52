package cli

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each row that a run stores or changes is one event, however often it is sent. Where nobody takes them, the run is done
// all the same, and the next one sends them.
func TestEvents(t *testing.T) {
	emptyEnv(t)
	var mu sync.Mutex
	status, times := http.StatusOK, map[string]int{} // by type and id
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var all []struct{ Type, ID string }
		assert.NoError(t, json.NewDecoder(r.Body).Decode(&all))
		for _, e := range all {
			if status == http.StatusOK {
				times[e.Type+" "+e.ID]++
			}
		}
		w.WriteHeader(status)
	}))
	defer s.Close()
	of := func(kind string) (n int) {
		for id, sent := range times {
			if strings.HasPrefix(id, kind) {
				require.Equal(t, 1, sent, id)
				n++
			}
		}
		return n
	}
	dir := filepath.Join(t.TempDir(), "s")
	require.NoError(t, os.Mkdir(dir, 0o755))
	run := func(args string) {
		t.Helper()
		a := here(t, args+" --web=demo --events="+s.URL+" --store="+dir)
		require.Equal(t, exitOK, a.code, a.stderr)
	}
	status = http.StatusForbidden
	run("--job=catalog --site=gadgets --log-level=error")
	require.Empty(t, times)
	status = http.StatusOK
	run("--job=catalog --site=gadgets --log-level=error --demo-changes=1")
	require.Equal(t, 48, of("product.changed"), "as it is now: four of them have changed since")
	run("--job=catalog --site=gadgets --log-level=error --demo-changes=2")
	changed := here(t, "changes catalog --json --store="+dir)
	require.Equal(t, 48+strings.Count(changed.stdout, "\n"), of("product.changed"))

	t.Chdir(t.TempDir()) // the sample bucket is copied there
	for _, more := range []string{"gb", "sg --events=" + s.URL} {
		a := here(t, "seed --progress=off --log-level=error --web=demo --runner=direct --country="+more)
		require.Equal(t, exitOK, a.code, a.stderr)
		require.NoError(t, filepath.WalkDir("out", func(name string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Chtimes(name, time.Time{}, time.Now().Add(-time.Hour)))
		}))
	}
	rows := here(t, "ls domains --country=sg --json")
	require.Positive(t, strings.Count(rows.stdout, "\n"))
	require.Equal(t, strings.Count(rows.stdout, "\n"), of("domain.collected"), "what was there before is no event")

	a := here(t, "--job=catalog --web=demo --events=kafka://x/y --store="+dir)
	require.Equal(t, exitUsage, a.code)
	require.Contains(t, a.stderr, "--events: it is no address of a queue: write https://HOST/PATH")
}
