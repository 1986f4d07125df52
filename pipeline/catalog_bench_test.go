package pipeline_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/catalog/catalogsim"
)

// BenchmarkCatalog crawls a simulated register of 12,000 products over TLS, without
// pauses, with the whole program in a process of its own. The web is in this process,
// and its CPU time is "web-cpu-us/product"; PostgreSQL's is nowhere. The goal is 4,000
// products for each second of the program's CPU time.
func BenchmarkCatalog(b *testing.B) {
	const pages, products = 1000, 1000 * catalogsim.PerPage
	program, err := buildProgram()
	require.NoError(b, err)
	for name, dsn := range map[string]func(testing.TB) string{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		b.Run(name, func(b *testing.B) {
			web := webtest.New(webtest.Options{LogLimit: -1})
			web.Handle(catalogsim.MatterHost, catalogsim.NewMatter(pages, catalogsim.PerPage))
			require.NoError(b, web.Start())
			defer func() { _ = web.Close() }()
			ca := filepath.Join(b.TempDir(), "ca.pem")
			require.NoError(b, os.WriteFile(ca, web.CAPEM(), 0o600))
			var speed, wall, rss, served []float64
			for range b.N {
				for range *benchRounds {
					to := dsn(b)
					cmd := exec.Command(program, "--job=catalog", "--store="+b.TempDir(), "--db="+to, "--connect-to="+web.Addr(), "--host-delay=0s", "--progress=off", "--log-level=warn")
					cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+ca)
					before, start := ownCPU(b), time.Now()
					out, peak, err := measured(cmd)
					if err != nil {
						b.Fatalf("%v\n%s", err, out[max(0, len(out)-2000):])
					}
					wall = append(wall, products/time.Since(start).Seconds())
					served = append(served, float64((ownCPU(b)-before).Microseconds())/products)
					n := savedProducts(b, to)
					require.Equal(b, products, n, "%d products saved, want %d", n, products)
					p := cmd.ProcessState
					speed = append(speed, products/(p.UserTime()+p.SystemTime()).Seconds())
					rss = append(rss, float64(peak)/(1<<20))
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(speed), "products/cpu-s")
			b.ReportMetric(median(wall), "products/s")
			b.ReportMetric(median(served), "web-cpu-us/product")
			b.ReportMetric(median(rss), "peak-MiB")
		})
	}
}

func savedProducts(b *testing.B, dsn string) (n int) {
	b.Helper()
	d, err := db.Open(b.Context(), dsn)
	require.NoError(b, err)
	err = d.QueryRowContext(b.Context(), `SELECT count(*) FROM catalog_products`).Scan(&n)
	require.NoError(b, errors.Join(err, d.Close()))
	return n
}

// ownCPU returns the CPU time of this process, without its children.
func ownCPU(b *testing.B) time.Duration {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(fmt.Errorf("reading the CPU time: %w", err))
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
