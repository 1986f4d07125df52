//go:build e2e

package e2etest

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

func TestMemoryOfABigListing(t *testing.T) {
	dir := rig.Directory(t, nil)
	const objects = 100_000
	for i := range objects / 1000 {
		at := filepath.Join(dir, "datasets", "country=sg", "category=news", fmt.Sprintf("date=2026-%02d-%02d", 1+i/28, 1+i%28))
		require.NoError(t, os.MkdirAll(at, 0o755))
		for n := range 500 {
			for _, name := range []string{fmt.Sprintf("raw_%04d.json", n+1), fmt.Sprintf("raw_%04d.json.success", n+1)} {
				require.NoError(t, os.WriteFile(filepath.Join(at, name), nil, 0o644))
			}
		}
	}
	begin := time.Now()
	c := startChild(t, exec.Command(rig.Program, "--store="+dir, "--until=list"), "/dev/null")
	if code := c.Wait(t, 2*time.Minute); code != 0 {
		t.Fatalf("exit code %d\n%s", code, rig.Tail(c.Output(t)))
	}
	t.Logf("listing %d objects: %v, peak RSS %d MB", objects, time.Since(begin).Round(time.Millisecond), c.PeakRSS(t)>>20)
	if out := c.Output(t); !strings.Contains(out, "would read 0 raw files (50000 listed, 50000 already processed") {
		t.Errorf("the listing is wrong:\n%s", rig.Tail(out))
	}
	if c.PeakRSS(t) > 300<<20 {
		t.Errorf("peak RSS %d MB, want at most 300", c.PeakRSS(t)>>20)
	}
}

// rawFile writes a raw file of records 0 … n-1 and returns its size in bytes.
func rawFile(t *testing.T, dir, name string, n int, record func(i int) string) int64 {
	t.Helper()
	at := filepath.Join(dir, "datasets", "country=sg", "category=news", "date=2026-01-28", name)
	require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
	f, err := os.Create(at)
	require.NoError(t, err)
	w := bufio.NewWriterSize(f, 1<<20)
	_, _ = w.WriteString(`{"meta":{"country":"sg","category":"news"},"records":[`) // the writer keeps its error for Flush
	for i := range n {
		if i > 0 {
			_, _ = w.WriteString(",\n")
		}
		_, _ = w.WriteString(record(i))
	}
	_, _ = w.WriteString("]}")
	err = w.Flush()
	info, serr := f.Stat()
	require.NoError(t, errors.Join(err, serr, f.Close()))
	return info.Size()
}

// Reading a file of 1 GB needs as little memory as reading one of 10 MB.
func TestMemoryOfABigFile(t *testing.T) {
	dir := rig.Directory(t, nil)
	records, distinct := 1_500_000, 20_000
	if rig.Nightly {
		records = 5_000_000
	}
	size := rawFile(t, dir, "raw_0001.json", records, func(i int) string {
		return fmt.Sprintf(`{"raw_url":"https://www.site-%d.com/section/article-%d.html?utm_source=feed","normalized_domain":"site-%[1]d.com","domain_id":"com:sg:site-%[1]d.com","title":"An article about nothing in particular","language":"en","rank":%[2]d}`, i%distinct, i)
	})
	begin := time.Now()
	c := startChild(t, exec.Command(rig.Program, "--store="+dir, "--until=extract"), "/dev/null")
	if code := c.Wait(t, 5*time.Minute); code != 0 {
		t.Fatalf("exit code %d\n%s", code, rig.Tail(c.Output(t)))
	}
	t.Logf("reading %d MB, %d records: %v, peak RSS %d MB", size>>20, records, time.Since(begin).Round(time.Millisecond), c.PeakRSS(t)>>20)
	if out := c.Output(t); !strings.Contains(out, fmt.Sprintf("%d records, 0 bad, %d distinct domains", records, distinct)) {
		t.Errorf("the extraction is wrong:\n%s", rig.Tail(out))
	}
	if c.PeakRSS(t) > 200<<20 {
		t.Errorf("peak RSS %d MB of a file of %d MB, want at most 200", c.PeakRSS(t)>>20, size>>20)
	}
}
