package db_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/db"
	"github.com/newsfork/seed-engine/io/db/dbtest"
)

var versions = fstest.MapFS{
	"00001_shops.sql": {Data: []byte("-- +goose Up\nCREATE TABLE shops (name TEXT NOT NULL PRIMARY KEY);\n")},
	"00002_open.sql":  {Data: []byte("-- +goose Up\nALTER TABLE shops ADD COLUMN open INTEGER NOT NULL DEFAULT 1;\n")},
}

func older() fstest.MapFS { return fstest.MapFS{"00001_shops.sql": versions["00001_shops.sql"]} }

// A step that needs other SQL in each database is a file of that name in two folders, and
// steps after it are ordinary ones.
func TestMigrateByDialect(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		files := fstest.MapFS{
			"00001_shops.sql":         versions["00001_shops.sql"],
			"sqlite/00002_kind.sql":   {Data: []byte("-- +goose Up\nCREATE VIEW kind AS SELECT 'sqlite' AS name;\n")},
			"postgres/00002_kind.sql": {Data: []byte("-- +goose Up\nCREATE VIEW kind AS SELECT 'postgres' AS name;\n")},
			"00003_open.sql":          versions["00002_open.sql"],
		}
		for range 2 {
			require.NoError(t, d.Migrate(t.Context(), "shop", files))
		}
		var kind string
		require.NoError(t, d.QueryRowContext(t.Context(), `SELECT name FROM kind`).Scan(&kind))
		require.Equal(t, string(d.Dialect), kind)
	})
}

func TestMigrate(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		require.NoError(t, d.Migrate(ctx, "shop", older()))
		_, err := d.ExecContext(ctx, `INSERT INTO shops (name) VALUES ($1)`, "a")
		require.NoError(t, err)

		require.NoError(t, d.Migrate(ctx, "shop", versions))
		require.NoError(t, d.Migrate(ctx, "shop", versions), "a second time")
		var open int
		require.NoError(t, d.QueryRowContext(ctx, `SELECT open FROM shops WHERE name = $1`, "a").Scan(&open))
		assert.Equal(t, 1, open)

		err = d.Migrate(ctx, "shop", older())
		require.Error(t, err)
		assert.Contains(t, err.Error(), "the database is at version 2, this program knows 1")
		require.Error(t, d.Migrate(ctx, "shop; DROP TABLE shops", versions))
	})
}

func TestMigrateFromEmptyByTwoAtOnce(t *testing.T) {
	for name, empty := range map[string]func(testing.TB) string{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		t.Run(name, func(t *testing.T) {
			dsn := empty(t)
			require.NoError(t, atOnce(4, func() error {
				d, err := db.Open(t.Context(), dsn)
				if err != nil {
					return err
				}
				return errors.Join(d.Migrate(t.Context(), "shop", versions), d.Close())
			}))
		})
	}
}

// A step that can be made twice, because it leaves the names that it found, is made once: the
// second one would undo the steps after it.
func TestMigrationIsMadeOnce(t *testing.T) {
	steps := fstest.MapFS{
		"00001_a.sql": {Data: []byte("-- +goose Up\nCREATE TABLE a (x TEXT);\n")},
		"00002_b.sql": {Data: []byte("-- +goose Up\nCREATE TABLE b (x TEXT);\nINSERT INTO b SELECT x FROM a;\nDROP TABLE a;\nALTER TABLE b RENAME TO a;\n")},
		"00003_y.sql": {Data: []byte("-- +goose Up\nALTER TABLE a ADD COLUMN y TEXT;\n")},
	}
	for range 5 {
		dsn := dbtest.SQLite(t)
		require.NoError(t, atOnce(6, func() error {
			d, err := db.Open(t.Context(), dsn)
			if err != nil {
				return err
			}
			return errors.Join(d.Migrate(t.Context(), "shop", steps), d.Close())
		}))
		d, err := db.Open(t.Context(), dsn)
		require.NoError(t, err)
		_, err = d.ExecContext(t.Context(), `INSERT INTO a (x, y) VALUES ('1', '2')`)
		require.NoError(t, err)
		_, err = d.ExecContext(t.Context(), `INSERT INTO goose_shop (version_id, is_applied) VALUES (2, 1)`)
		require.ErrorContains(t, err, "UNIQUE")
		require.NoError(t, d.Close())
	}
}

// The first that open a new file all turn it to WAL.
func TestOpenNewFileAtOnce(t *testing.T) {
	for range 50 {
		dsn := dbtest.SQLite(t)
		require.NoError(t, atOnce(8, func() error {
			d, err := db.Open(t.Context(), dsn)
			if err != nil {
				return err
			}
			return d.Close()
		}))
	}
}

func atOnce(n int, do func() error) error {
	var all sync.WaitGroup
	errs := make([]error, n)
	for i := range errs {
		all.Go(func() { errs[i] = do() })
	}
	all.Wait()
	return errors.Join(errs...)
}

// One query for both: parameters in any order and more than once, upsert, returning.
func TestOneQueryForBoth(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		require.NoError(t, d.Migrate(ctx, "shop", versions))
		const upsert = `INSERT INTO shops (open, name) VALUES ($2, $1) ON CONFLICT (name) DO UPDATE SET open = $2 + shops.open RETURNING name, open`
		for _, want := range []int{3, 6, 9} {
			var name string
			var open int
			require.NoError(t, d.QueryRowContext(ctx, upsert, "a", 3).Scan(&name, &open))
			assert.Equal(t, "a", name)
			assert.Equal(t, want, open)
		}
	})
}

func TestTxUnderContention(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		require.NoError(t, d.Migrate(ctx, "shop", versions))
		_, err := d.ExecContext(ctx, `INSERT INTO shops (name, open) VALUES ('a', 0)`)
		require.NoError(t, err)
		const workers, each = 4, 25
		var runs sync.Map
		var all, read sync.WaitGroup
		read.Add(workers)
		for w := range workers {
			all.Go(func() {
				met := false
				for i := range each {
					err := d.Tx(ctx, func(tx *sql.Tx) error {
						runs.Store(fmt.Sprint(w, i, time.Now()), true)
						var open int
						if err := tx.QueryRowContext(ctx, `SELECT open FROM shops WHERE name = 'a'`).Scan(&open); err != nil {
							return err
						}
						if !met && d.Dialect == db.Postgres { // SQLite lets one in at a time
							met = true
							read.Done()
							read.Wait()
						}
						_, err := tx.ExecContext(ctx, `UPDATE shops SET open = $1 WHERE name = 'a'`, open+1)
						return err
					})
					assert.NoError(t, err)
				}
			})
		}
		all.Wait()
		var open, tries int
		require.NoError(t, d.QueryRowContext(ctx, `SELECT open FROM shops`).Scan(&open))
		assert.Equal(t, workers*each, open, "no update may get lost")
		runs.Range(func(any, any) bool { tries++; return true })
		if d.Dialect == db.Postgres {
			assert.Greater(t, tries, workers*each, "transactions did not meet, so nothing was proved")
		}
	})
}

// Two processes have no lock in common but the file's: two Opens stand for them.
func TestTxOfTwoProcesses(t *testing.T) {
	dsn := dbtest.SQLite(t)
	var pair [2]*db.DB
	for i := range pair {
		d, err := db.Open(t.Context(), dsn)
		require.NoError(t, err)
		defer d.Close()
		pair[i] = d
	}
	require.NoError(t, pair[0].Migrate(t.Context(), "shop", versions))
	var all sync.WaitGroup
	for w, d := range pair {
		all.Go(func() {
			for i := range 50 {
				assert.NoError(t, d.Tx(t.Context(), func(tx *sql.Tx) error {
					_, err := tx.ExecContext(t.Context(), `INSERT INTO shops (name) VALUES ($1)`, fmt.Sprintf("%d-%d", w, i))
					return err
				}))
			}
		})
	}
	all.Wait()
	var n int
	require.NoError(t, pair[0].QueryRowContext(t.Context(), `SELECT count(*) FROM shops`).Scan(&n))
	assert.Equal(t, 100, n)
}

func TestTxTakesBack(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		require.NoError(t, d.Migrate(ctx, "shop", versions))
		stop := errors.New("stop")
		insert := func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `INSERT INTO shops (name) VALUES ('a')`)
			return err
		}
		assert.ErrorIs(t, d.Tx(ctx, func(tx *sql.Tx) error { return errors.Join(insert(tx), stop) }), stop)
		assert.Panics(t, func() { _ = d.Tx(ctx, func(tx *sql.Tx) error { _ = insert(tx); panic("bug") }) })
		require.NoError(t, d.Tx(ctx, insert), "the earlier ones left a row or a lock")

		ended, cancel := context.WithCancel(ctx)
		cancel()
		assert.ErrorIs(t, d.Tx(ended, insert), context.Canceled)
	})
}

// Values that the database refuses are told from a database that fails.
func TestRejected(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		require.NoError(t, d.Migrate(ctx, "shop", versions))
		_, err := d.ExecContext(ctx, `CREATE TABLE numbers (n INTEGER PRIMARY KEY CHECK (n < 10))`)
		require.NoError(t, err)
		insert := func(name any) error {
			return d.Tx(ctx, func(tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, `INSERT INTO shops (name) VALUES ($1)`, name)
				return err
			})
		}
		require.NoError(t, insert("a"))
		rejected := map[string]error{"a second one of its key": insert("a"), "nothing where something must be": insert(nil)}
		_, rejected["against a check"] = d.ExecContext(ctx, `INSERT INTO numbers (n) VALUES (11)`)
		_, rejected["no number"] = d.ExecContext(ctx, `INSERT INTO numbers (n) VALUES ('x')`)
		if d.Dialect == db.Postgres {
			rejected["U+0000"] = insert("a\x00b")
			rejected["no UTF-8"] = insert("a\xffb")
			long := make([]byte, 3000) // not to be compressed below the limit of an index row
			random := rand.New(rand.NewPCG(1, 2))
			for i := range long {
				long[i] = byte('!' + random.IntN(90))
			}
			rejected["too long for an index"] = insert(string(long))
		} else {
			_, rejected["too big"] = d.ExecContext(ctx, `INSERT INTO shops (name) VALUES (zeroblob(2000000000))`)
		}
		for name, err := range rejected {
			require.Error(t, err, name)
			assert.True(t, db.Rejected(err), "%s: %v", name, err)
			assert.False(t, db.Contended(err), name)
		}

		_, err = d.ExecContext(ctx, `INSERT INTO nowhere (name) VALUES ($1)`, "a")
		require.Error(t, err)
		assert.False(t, db.Rejected(err), "a table that is not there: %v", err)
		over, cancel := context.WithCancel(ctx)
		cancel()
		_, err = d.ExecContext(over, `INSERT INTO shops (name) VALUES ($1)`, "b")
		require.Error(t, err)
		assert.False(t, db.Rejected(err), "a statement that was cut off: %v", err)
		assert.False(t, db.Rejected(nil))
		var n int
		require.NoError(t, d.QueryRowContext(ctx, `SELECT count(*) FROM shops`).Scan(&n))
		assert.Equal(t, 1, n)
	})
}

func TestOpenRefuses(t *testing.T) {
	for dsn, want := range map[string]string{
		"":                               "want sqlite:///path",
		"mysql://u:geheim@h/d":           "want sqlite:///path",
		"sqlite://":                      "no path",
		"sqlite:///x.db?mode=memory":     "no options",
		"sqlite:///no/such/folder/x.db":  "create it first",
		"sqlite:///etc/passwd/x.db":      "not a folder",
		"postgres://u:ge%zzheim@h/d":     "not a URL",
		"postgres://u:geheim@h:x/d":      "not a URL",
		"postgres://u:geheim@h/d?port=x": "REDACTED|invalid port",
	} {
		_, err := db.Open(t.Context(), dsn)
		if assert.Error(t, err, dsn) {
			assert.Regexp(t, want, err.Error(), dsn)
			assert.NotContains(t, err.Error(), "heim", dsn)
		}
	}
}

func TestPasswordIsNeverInAnError(t *testing.T) {
	dsn := dbtest.Postgres(t)
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	const secret = "p/w @%:geheim"
	for name, change := range map[string]func(*url.URL){
		"wrong password":    func(*url.URL) {},
		"no such database":  func(u *url.URL) { u.Path = "/nowhere" },
		"nobody listens":    func(u *url.URL) { u.Host = "127.0.0.1:1" },
		"no such host":      func(u *url.URL) { u.Host = "db.invalid" },
		"unknown parameter": func(u *url.URL) { u.RawQuery = "nonsense=1&sslmode=disable" },
		"bad parameter":     func(u *url.URL) { u.RawQuery = "sslmode=" + url.QueryEscape(secret) },
	} {
		other := *u
		other.User = url.UserPassword("test", secret)
		change(&other)
		_, err := db.Open(t.Context(), other.String())
		if assert.Error(t, err, name) {
			for _, part := range []string{"geheim", url.QueryEscape(secret), url.PathEscape(secret)} {
				assert.NotContains(t, err.Error(), part, name)
			}
		}
	}
}

func TestPasswordFromTheEnvironment(t *testing.T) {
	u, err := url.Parse(dbtest.Postgres(t))
	require.NoError(t, err)
	password, _ := u.User.Password()
	u.User = url.User("test")
	_, err = db.Open(t.Context(), u.String())
	require.Error(t, err, "without a password")
	t.Setenv("PGPASSWORD", password)
	d, err := db.Open(t.Context(), u.String())
	require.NoError(t, err)
	require.NoError(t, d.Close())
}

func TestOfWorker(t *testing.T) {
	const job, own = "postgres://seed@db:5432/prod?sslmode=require", "postgres://seed:secret@db:5432/prod"
	for _, tt := range []struct {
		job, own  string
		elsewhere bool
		want      string
	}{
		{job, own, true, "postgres://seed:secret@db:5432/prod?sslmode=require"},
		{job, own, false, job},
		{job, "", true, job},
		{job, "postgres://seed:%zz@db:5432/prod", true, job},
		{job, "postgres://seed:secret@db:5432/staging", true, job},
		{job, "postgres://seed:secret@other:5432/prod", true, job},
		{job, "postgres://other:secret@db:5432/prod", true, job},
		{"sqlite:///a.db", own, true, "sqlite:///a.db"},
	} {
		t.Setenv("SEED_DB", tt.own)
		assert.Equal(t, tt.want, db.OfWorker(tt.job, tt.elsewhere), "%s, SEED_DB=%s, elsewhere %t", tt.job, tt.own, tt.elsewhere)
	}
}

func TestSQLitePaths(t *testing.T) {
	dir := t.TempDir()
	for path, file := range map[string]string{
		"/plain.db":              "plain.db",
		"/with space & 50%25.db": "with space & 50%.db",
		"/question%3F.db":        "question?.db",
	} {
		d, err := db.Open(t.Context(), "sqlite://"+dir+path)
		require.NoError(t, err, path)
		_, err = d.ExecContext(t.Context(), `CREATE TABLE t (x TEXT)`)
		require.NoError(t, err, path)
		require.NoError(t, d.Close())
		assert.FileExists(t, filepath.Join(dir, file))
	}
	t.Chdir(dir)
	d, err := db.Open(t.Context(), "sqlite://other.db")
	require.NoError(t, err)
	_, err = d.ExecContext(t.Context(), `CREATE TABLE t (x TEXT)`)
	require.NoError(t, err)
	require.NoError(t, d.Close())
	assert.FileExists(t, filepath.Join(dir, "other.db"))
}

func TestMemory(t *testing.T) {
	open := func() *db.DB {
		d, err := db.Open(t.Context(), "sqlite:///:memory:")
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, d.Close()) })
		return d
	}
	a, b := open(), open()
	require.NoError(t, a.Migrate(t.Context(), "shop", versions))
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			assert.NoError(t, a.Tx(t.Context(), func(tx *sql.Tx) error {
				_, err := tx.ExecContext(t.Context(), `INSERT INTO shops (name) VALUES ($1)`, strings.Repeat("x", i))
				return err
			}))
		})
	}
	all.Wait()
	var n int
	require.NoError(t, a.QueryRowContext(t.Context(), `SELECT count(*) FROM shops`).Scan(&n))
	assert.Equal(t, 20, n)
	assert.Error(t, b.QueryRowContext(t.Context(), `SELECT count(*) FROM shops`).Scan(&n), "each has its own")
}

func TestTimes(t *testing.T) {
	at := time.Date(2026, 11, 21, 16, 30, 0, 123456000, time.FixedZone("KST", 9*3600))
	assert.True(t, db.Time(db.Micros(at)).Equal(at))
	assert.Equal(t, time.UTC, db.Time(0).Location())
}

func TestMissing(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a b.db"), nil, 0o600))
	for dsn, want := range map[string]bool{
		"sqlite://" + dir + "/a%20b.db":     false,
		"sqlite://" + dir + "/none.db":      true,
		"postgres://user@host/none":         false,
		"sqlite://" + dir + "/a%2":          false, // no path at all, as Open says
		"sqlite://" + dir + "/none/none.db": true,
	} {
		file, missing := db.Missing(dsn)
		require.Equal(t, want, missing, dsn)
		if missing {
			require.Equal(t, dsn, "sqlite://"+file)
		}
	}
}

// What was deleted is not in the database's files any more: SQLite overwrites
// it, and Erase takes what an older program only unlinked.
func TestDeletedIsErased(t *testing.T) {
	const secret = "a text whose time to be kept is over "
	text := strings.Repeat(secret, 40)
	fill := func(t *testing.T, d *db.DB, c interface {
		ExecContext(context.Context, string, ...any) (sql.Result, error)
	}) {
		_, err := c.ExecContext(t.Context(), `CREATE TABLE texts (id INTEGER PRIMARY KEY, text TEXT NOT NULL)`)
		require.NoError(t, err)
		for i := range 300 {
			_, err := c.ExecContext(t.Context(), `INSERT INTO texts (id, text) VALUES ($1, $2)`, i, fmt.Sprint(text, i))
			require.NoError(t, err)
		}
		_, err = c.ExecContext(t.Context(), `UPDATE texts SET text = 'short' WHERE id < 100`)
		require.NoError(t, err)
		_, err = c.ExecContext(t.Context(), `DELETE FROM texts WHERE id >= 50`)
		require.NoError(t, err)
	}
	holds := func(t *testing.T, dsn string) bool {
		var all []byte
		for _, suffix := range []string{"", "-wal"} {
			b, err := os.ReadFile(strings.TrimPrefix(dsn, "sqlite://") + suffix)
			if !errors.Is(err, os.ErrNotExist) {
				require.NoError(t, err)
			}
			all = append(all, b...)
		}
		return strings.Contains(string(all), secret)
	}
	t.Run("overwritten", func(t *testing.T) {
		dsn := dbtest.SQLite(t)
		d, err := db.Open(t.Context(), dsn)
		require.NoError(t, err)
		fill(t, d, d)
		require.NoError(t, d.Close()) // which empties the log
		require.False(t, holds(t, dsn))
	})
	t.Run("erased", func(t *testing.T) {
		dsn := dbtest.SQLite(t)
		d, err := db.Open(t.Context(), dsn)
		require.NoError(t, err)
		defer func() { require.NoError(t, d.Close()) }()
		c, err := d.Conn(t.Context())
		require.NoError(t, err)
		_, err = c.ExecContext(t.Context(), `PRAGMA secure_delete = 0`)
		require.NoError(t, err)
		fill(t, d, c)
		require.NoError(t, c.Close())
		_, err = d.ExecContext(t.Context(), `PRAGMA wal_checkpoint(TRUNCATE)`)
		require.NoError(t, err)
		require.True(t, holds(t, dsn), "in the pages that are free")
		require.NoError(t, d.Erase(t.Context(), "texts"))
		require.False(t, holds(t, dsn))
		var n int
		require.NoError(t, d.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM texts WHERE text = 'short'`).Scan(&n))
		require.Equal(t, 50, n)
	})
	t.Run("postgres", func(t *testing.T) {
		d, err := db.Open(t.Context(), dbtest.Postgres(t))
		require.NoError(t, err)
		defer func() { require.NoError(t, d.Close()) }()
		fill(t, d, d)
		size := func() (n int) {
			require.NoError(t, d.QueryRowContext(t.Context(), `SELECT pg_relation_size('texts')`).Scan(&n))
			return n
		}
		require.Greater(t, size(), 100_000)
		require.NoError(t, d.Erase(t.Context(), "texts"))
		require.LessOrEqual(t, size(), 8192, "one page holds the fifty short ones")
	})
	t.Run("read by others", func(t *testing.T) {
		d, err := db.Open(t.Context(), dbtest.Postgres(t))
		require.NoError(t, err)
		defer func() { require.NoError(t, d.Close()) }()
		number := func(query string) (n int) {
			require.NoError(t, d.QueryRowContext(t.Context(), query).Scan(&n))
			return n
		}
		earlier, err := d.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
		require.NoError(t, err)
		_, err = earlier.ExecContext(t.Context(), `SELECT 1`) // from now on it sees one moment
		require.NoError(t, err)
		fill(t, d, d)
		file := func() int { return number(`SELECT pg_relation_filenode('texts')`) }
		before, end := file(), make(chan error)
		go func() { end <- d.Erase(t.Context(), "texts") }()
		require.Eventually(t, func() bool { return file() != before }, time.Minute, time.Millisecond, "a first try rewrites the table")
		select {
		case err := <-end:
			t.Fatal("erased while a transaction can read the deleted rows: ", err)
		default:
		}
		require.NoError(t, earlier.Rollback())
		require.NoError(t, <-end)
		require.LessOrEqual(t, number(`SELECT pg_relation_size('texts')`), 8192)
	})
}

// A SQLite database is its user's alone, with the files next to it.
func TestSQLiteIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	d, err := db.Open(t.Context(), "sqlite://"+path)
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	_, err = d.ExecContext(t.Context(), `CREATE TABLE t (n INTEGER)`)
	require.NoError(t, err)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(path + suffix)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm(), suffix)
	}
}

// Rows that are written into a deleted or replaced file are lost when the process ends.
func TestSQLiteFileIsTakenAway(t *testing.T) {
	for name, replace := range map[string]bool{"deleted": false, "replaced": true} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "seed.db")
			d, err := db.Open(t.Context(), "sqlite://"+file)
			require.NoError(t, err)
			t.Cleanup(func() { _ = d.Close() })
			_, err = d.ExecContext(t.Context(), "CREATE TABLE shops (name TEXT)")
			require.NoError(t, err)

			insert := func(tx *sql.Tx) error {
				_, err := tx.Exec("INSERT INTO shops VALUES ('a')")
				return err
			}
			require.NoError(t, d.Tx(t.Context(), insert))
			err = d.Tx(t.Context(), func(tx *sql.Tx) error { // in the middle of a transaction
				require.NoError(t, os.Rename(file, file+".away"))
				if replace {
					require.NoError(t, os.WriteFile(file, nil, 0o600))
				}
				return insert(tx)
			})
			want := "was deleted or replaced while it was open"
			assert.ErrorContains(t, err, want)
			assert.ErrorContains(t, d.Tx(t.Context(), insert), want)
			_, err = d.ExecContext(t.Context(), "INSERT INTO shops VALUES ('b')")
			assert.ErrorContains(t, err, want)
		})
	}
}

func TestInsertRows(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		require.NoError(t, d.Migrate(ctx, "shop", fstest.MapFS{"00001_shops.sql": {Data: []byte("-- +goose Up\nCREATE TABLE shops (name TEXT NOT NULL PRIMARY KEY, floors INTEGER NOT NULL, note TEXT);\n")}}))
		insert := func(end string, rows ...[]any) error {
			return d.Tx(ctx, func(tx *sql.Tx) error {
				return d.InsertRows(ctx, tx, "shops", []string{"floors", "name", "note"}, rows, end)
			})
		}
		list := func(names ...string) (found []string) {
			rows, err := d.QueryContext(ctx, `SELECT name, floors, coalesce(note, '-') FROM shops WHERE name `+d.AnyOf(1)+` ORDER BY name`, d.List(names))
			require.NoError(t, err)
			defer rows.Close()
			for rows.Next() {
				var name, note string
				var floors int64
				require.NoError(t, rows.Scan(&name, &floors, &note))
				found = append(found, fmt.Sprint(name, " ", floors, " ", note))
			}
			require.NoError(t, rows.Err())
			return found
		}
		note := `"<&>{},\` + "\u2028'"
		require.NoError(t, insert(""))
		require.NoError(t, insert("", []any{int64(1), "a,{}", (*string)(nil)}, []any{int64(2), note, &note}, []any{int64(3), "c", "x"}))
		assert.Equal(t, []string{note + " 2 " + note, "a,{} 1 -"}, list("a,{}", note, "none"))
		assert.Empty(t, list())

		require.NoError(t, insert("ON CONFLICT (name) DO UPDATE SET floors = excluded.floors", []any{int64(9), "c", "y"}, []any{int64(4), "d", "z"}))
		assert.Equal(t, []string{"c 9 x", "d 4 z"}, list("c", "d"))
		err := insert("", []any{int64(5), "e", "z"}, []any{int64(5), "d", "z"})
		require.Error(t, err)
		assert.True(t, db.Rejected(err))
		assert.Empty(t, list("e"), "all or none")

		var added []string
		require.NoError(t, d.Tx(ctx, func(tx *sql.Tx) error {
			added = nil
			return d.InsertNew(ctx, tx, "shops", []string{"name", "floors"}, [][]any{{"d", int64(7)}, {"x", int64(7)}, {"y", int64(7)}, {"x", int64(8)}}, func(name string) { added = append(added, name) })
		}))
		assert.Equal(t, []string{"x", "y"}, added)
		assert.Equal(t, []string{"d 4 z", "x 7 -", "y 7 -"}, list("d", "x", "y"))

		ended, cancel := context.WithCancel(ctx)
		assert.ErrorIs(t, d.Tx(ctx, func(tx *sql.Tx) error {
			cancel()
			return d.InsertRows(ended, tx, "shops", []string{"floors", "name", "note"}, [][]any{{int64(1), "f", "g"}}, "")
		}), context.Canceled)
		assert.Empty(t, list("f"))
	})
}
