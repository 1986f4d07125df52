//go:build unix

// Package dbtest gives tests a database of their own: a SQLite file, and
// a schema of a PostgreSQL that the test process starts by itself from Debian's
// package. No promise: see docs/library.md.
package dbtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/freeport"
)

// Each runs test on an empty SQLite file and in an empty schema of PostgreSQL.
// Where PostgreSQL is not installed its half is skipped; with CI=true that
// fails.
func Each(t *testing.T, test func(t *testing.T, d *db.DB)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(t, open(t, SQLite(t))) })
	t.Run("postgres", func(t *testing.T) { test(t, open(t, Postgres(t))) })
}

func open(t *testing.T, dsn string) *db.DB {
	t.Helper()
	d, err := db.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("closing the database: %v", err)
		}
	})
	return d
}

// SQLite returns the DSN of a file that does not exist yet.
func SQLite(t testing.TB) string {
	return "sqlite://" + filepath.Join(t.TempDir(), "test.db")
}

// cluster is a PostgreSQL that this process starts.
type cluster struct {
	start    sync.Once
	err      error
	server   string // host:port
	password string
	input    io.Closer // it runs until this is closed, by the end of the process; kept here from the garbage collector
	control  func(verb, mode string) error
	schemas  atomic.Int64
}

var debian cluster

var errMissing = errors.New("no PostgreSQL here: apt-get install postgresql")

// Postgres returns the DSN, with a password, of a new empty schema of the one
// database: to create a database would cost PostgreSQL 90 ms of a processor, a
// schema costs 0.1 ms. The server is started once a process and ends with it.
func Postgres(t testing.TB) string {
	t.Helper()
	debian.start.Do(func() {
		var bin string
		if bin, debian.err = newest(); debian.err == nil {
			debian.err = debian.launch(bin)
		}
	})
	return debian.schema(t)
}

// Controlled is Postgres with a server of the test's own, and has it stop, start or restart:
// with the mode fast, or immediate, which is a crash.
func Controlled(t testing.TB) (dsn string, control func(verb, mode string)) {
	t.Helper()
	c := &cluster{}
	var bin string
	if bin, c.err = newest(); c.err == nil {
		c.err = c.launch(bin)
	}
	dsn = c.schema(t)
	t.Cleanup(func() { _ = c.input.Close() }) // the end of the process closes it too
	return dsn, func(verb, mode string) {
		t.Helper()
		if err := c.control(verb, mode); err != nil {
			t.Fatal(err)
		}
	}
}

// schema makes a new schema, and returns its DSN.
func (c *cluster) schema(t testing.TB) string {
	t.Helper()
	switch {
	case errors.Is(c.err, errMissing) && os.Getenv("CI") != "true":
		t.Skip(c.err)
	case c.err != nil:
		t.Fatalf("starting PostgreSQL: %v", c.err)
	}
	dsn := fmt.Sprintf("postgres://test:%s@%s/postgres?sslmode=disable", c.password, c.server)
	schema := fmt.Sprintf("test_%d", c.schemas.Add(1))
	ctx := context.Background()
	admin, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	_, err = admin.Exec(ctx, "CREATE SCHEMA "+schema)
	if end := admin.Close(ctx); err == nil {
		err = end
	}
	if err != nil {
		t.Fatal(err)
	}
	return dsn + "&search_path=" + schema
}

// runScript runs the server until standard input ends, which it does when the test
// process ends in any way; then it removes the folder.
const runScript = `bin=$1 dir=$2
"$bin/postgres" -D "$dir/data" $3 >"$dir/log" 2>&1 </dev/null &
cat >/dev/null
"$bin/pg_ctl" -D "$dir/data" -m fast -w stop >>"$dir/log" 2>&1
rm -rf "$dir"`

// newest is the folder of the programs of Debian's newest version.
func newest() (bin string, err error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil || len(found) == 0 {
		return "", errMissing
	}
	version := func(p string) int {
		n, _ := strconv.Atoi(strings.Split(p, "/")[4]) // 0 for what is not a version
		return n
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })), nil
}

func (c *cluster) launch(bin string) error {
	dir, err := os.MkdirTemp("", "dbtest-")
	if err != nil {
		return err
	}
	as, err := unprivileged(dir)
	if err != nil {
		return err
	}
	c.password = rand.Text()
	secret := filepath.Join(dir, "password")
	if err := os.WriteFile(secret, []byte(c.password), 0o644); err != nil {
		return err
	}
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", filepath.Join(dir, "data"), "-U", "test",
		"--pwfile", secret, "-A", "scram-sha-256", "-E", "UTF8", "--locale=C", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = dir, as
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}

	ports, err := freeport.Find(1)
	if err != nil {
		return err
	}
	port := ports[0]
	c.server = "127.0.0.1:" + port
	options := "-p " + port + " -k " + dir + " -c listen_addresses=127.0.0.1 -c fsync=off -c full_page_writes=off -c max_connections=200"
	run := exec.Command("sh", "-c", runScript, "sh", bin, dir, options)
	run.Dir = dir
	run.SysProcAttr = &syscall.SysProcAttr{Credential: as.Credential, Setsid: true} // Ctrl-C is not for it
	c.input, err = run.StdinPipe()
	if err != nil {
		return err
	}
	if err := run.Start(); err != nil {
		return err
	}
	c.control = func(verb, mode string) error {
		ctl := exec.Command(filepath.Join(bin, "pg_ctl"), "-D", filepath.Join(dir, "data"), "-l", filepath.Join(dir, "log"), "-o", options, "-m", mode, "-w", verb)
		ctl.Dir, ctl.SysProcAttr = dir, run.SysProcAttr
		if out, err := ctl.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", verb, err, out)
		}
		return nil
	}
	return wait(bin, port, dir)
}

// wait waits until the server answers.
func wait(bin, port, dir string) error {
	const tries = 200
	for try := 1; ; try++ {
		// pg_isready waits for an answer itself; only a refused connection
		// comes back at once.
		out, err := exec.Command(filepath.Join(bin, "pg_isready"), "-h", "127.0.0.1", "-p", port, "-t", "10").CombinedOutput()
		if err == nil {
			return nil
		}
		if try == tries {
			log, _ := os.ReadFile(filepath.Join(dir, "log")) // it only adds detail
			return fmt.Errorf("it does not answer: %s %s", out, log)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// unprivileged returns the user that the server runs as, because PostgreSQL
// refuses to run as root, and makes that user the folder's owner.
func unprivileged(dir string) (*syscall.SysProcAttr, error) {
	if os.Getuid() != 0 {
		return &syscall.SysProcAttr{}, nil
	}
	u, err := user.Lookup("postgres") // Debian's package makes it
	if err != nil {
		return nil, err
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return nil, err
	}
	if err := os.Chown(dir, uid, gid); err != nil {
		return nil, err
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}
