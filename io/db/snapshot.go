package db

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
)

// ErrNotEmpty says that a database has tables or rows already.
var ErrNotEmpty = errors.New("it is not empty")

// nextStatement ends a statement in a snapshot of PostgreSQL; a row of COPY cannot be this line, because endOfRows comes first.
const (
	nextStatement = "--"
	endOfRows     = `\.`
)

// Snapshot writes the database as it is at one moment to a new file, while others read and write. Of SQLite it is a database; of
// PostgreSQL it is a script for psql with all tables and views of the current schema.
func (d *DB) Snapshot(ctx context.Context, file string) (err error) {
	if d.Dialect == SQLite {
		_, err = d.DB.ExecContext(ctx, `VACUUM INTO $1`, file)
	} else {
		err = d.writeScript(ctx, file)
	}
	if err != nil {
		return fmt.Errorf("taking a snapshot of the database: %w", err)
	}
	return nil
}

// Empty returns ErrNotEmpty if the database that dsn names has something: its SQLite file exists, or another one that SQLite would
// read with it, or the schema has a table.
func Empty(ctx context.Context, dsn string) error {
	rest, lite := strings.CutPrefix(dsn, "sqlite://")
	if !lite {
		d, err := Open(ctx, dsn)
		if err != nil {
			return err
		}
		var n int
		err = d.QueryRowContext(ctx, `SELECT count(*) FROM pg_class
			WHERE relkind IN ('r', 'v', 'S') AND relnamespace = current_schema()::regnamespace`).Scan(&n)
		if err == nil && n > 0 {
			err = ErrNotEmpty
		}
		return errors.Join(err, d.Close())
	}
	path, err := url.PathUnescape(rest)
	if err != nil {
		return err
	}
	for _, file := range []string{path, path + "-wal", path + "-shm", path + "-journal"} {
		if _, err := os.Lstat(file); err == nil {
			return fmt.Errorf("%w: there is %s", ErrNotEmpty, file)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Restore fills the database that dsn names, if it is Empty, with a snapshot, all of it or nothing. Leases count as released.
func Restore(ctx context.Context, dsn, snapshot string) (err error) {
	if err := Empty(ctx, dsn); err != nil {
		return err
	}
	rest, lite := strings.CutPrefix(dsn, "sqlite://")
	if !lite {
		d, err := Open(ctx, dsn)
		if err != nil {
			return err
		}
		return errors.Join(d.readScript(ctx, snapshot), d.Close())
	}
	path, err := url.PathUnescape(rest)
	if err != nil {
		return err
	}
	if err := checkSQLite(ctx, snapshot); err != nil {
		return err
	}
	part := path + ".restoring"
	defer func() { _ = os.Remove(part) }() // it is gone after the rename
	if err := copyFile(snapshot, part); err != nil {
		return err
	}
	return os.Rename(part, path)
}

// checkSQLite releases the leases of a file, and reads all of it.
func checkSQLite(ctx context.Context, file string) error {
	d, err := Open(ctx, "sqlite://"+(&url.URL{Path: file}).EscapedPath())
	if err != nil {
		return err
	}
	said, err := Texts(ctx, d, `PRAGMA integrity_check`)
	if err == nil && (len(said) != 1 || said[0] != "ok") {
		err = fmt.Errorf("SQLite finds the snapshot damaged: %s", strings.Join(said, "; "))
	}
	var there bool
	if err == nil {
		there, err = d.HasTable(ctx, "leases")
	}
	if err == nil && there {
		_, err = d.DB.ExecContext(ctx, releaseAll)
	}
	return errors.Join(err, d.Close()) // the last connection empties the log into the file
}

// releaseAll releases the leases: their holders are at work elsewhere, if at all.
const releaseAll = `UPDATE leases SET expires_at = 0`

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was only read
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// postgres calls do with a connection of pgx, for COPY, inside a transaction that sees one moment.
func (d *DB) postgres(ctx context.Context, begin string, do func(pg *pgx.Conn) error) error {
	c, err := d.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // back to the pool
	return c.Raw(func(driver any) error {
		pg := driver.(typedConn).Conn.Conn()
		if _, err := pg.Exec(ctx, begin); err != nil {
			return err
		}
		err := do(pg)
		end := `COMMIT`
		if err != nil {
			end = `ROLLBACK`
		}
		_, ended := pg.Exec(context.WithoutCancel(ctx), end)
		return errors.Join(err, ended)
	})
}

// The parts of PostgreSQL's script, in their order. pg_get_… name what is in the current schema without its schema, so that it
// can be restored to another one.
var scriptParts = []string{
	// Sequences of columns that are no identity.
	`SELECT 'CREATE SEQUENCE ' || quote_ident(s.relname) || ';' FROM pg_class s WHERE s.relkind = 'S' AND s.relnamespace = current_schema()::regnamespace
		AND NOT EXISTS (SELECT FROM pg_depend i WHERE i.objid = s.oid AND i.deptype = 'i') ORDER BY s.oid`,
	`SELECT 'CREATE TABLE ' || quote_ident(c.relname) || ' (' || string_agg(quote_ident(a.attname) || ' ' || format_type(a.atttypid, a.atttypmod) ||
			CASE WHEN a.attcollation <> t.typcollation THEN ' COLLATE ' || quote_ident(l.collname) ELSE '' END ||
			CASE WHEN a.attidentity <> '' THEN ' GENERATED ' || CASE a.attidentity WHEN 'a' THEN 'ALWAYS' ELSE 'BY DEFAULT' END || ' AS IDENTITY'
				WHEN a.attgenerated <> '' THEN ' GENERATED ALWAYS AS (' || pg_get_expr(f.adbin, f.adrelid) || ') STORED'
				WHEN f.adbin IS NOT NULL THEN ' DEFAULT ' || pg_get_expr(f.adbin, f.adrelid) ELSE '' END ||
			CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END, ', ' ORDER BY a.attnum) || ')' ||
			coalesce(' WITH (' || array_to_string(c.reloptions, ', ') || ')', '') || ';'
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped JOIN pg_type t ON t.oid = a.atttypid
		LEFT JOIN pg_collation l ON l.oid = a.attcollation LEFT JOIN pg_attrdef f ON f.adrelid = c.oid AND f.adnum = a.attnum
		WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace GROUP BY c.oid, c.relname, c.reloptions ORDER BY c.oid`,
	`SELECT 'COPY ' || quote_ident(c.relname) || ' (' || string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) || ') FROM STDIN;'
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
		WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace GROUP BY c.oid, c.relname ORDER BY c.oid`,
	`SELECT 'ALTER TABLE ' || quote_ident(c.relname) || ' ADD CONSTRAINT ' || quote_ident(o.conname) || ' ' || pg_get_constraintdef(o.oid, true) || ';'
		FROM pg_constraint o JOIN pg_class c ON c.oid = o.conrelid WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
		AND o.contype IN ('p', 'u', 'x', 'c', 'f') ORDER BY o.contype = 'f', o.oid`,
	`SELECT pg_get_indexdef(i.indexrelid, 0, true) || ';' FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
		WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
		AND NOT EXISTS (SELECT FROM pg_constraint o WHERE o.conindid = i.indexrelid AND o.contype IN ('p', 'u', 'x')) ORDER BY i.indexrelid`,
	// An identity's sequence may have another name there.
	`SELECT 'SELECT setval(' || CASE WHEN i.objid IS NULL THEN quote_literal(quote_ident(s.relname)) ELSE 'pg_get_serial_sequence(' ||
			quote_literal(quote_ident(c.relname)) || ', ' || quote_literal(a.attname) || ')' END || ', ' || q.last_value || ');'
		FROM pg_class s JOIN pg_sequences q ON q.schemaname = current_schema() AND q.sequencename = s.relname AND q.last_value IS NOT NULL
		LEFT JOIN pg_depend i ON i.objid = s.oid AND i.deptype = 'i' LEFT JOIN pg_class c ON c.oid = i.refobjid
		LEFT JOIN pg_attribute a ON a.attrelid = i.refobjid AND a.attnum = i.refobjsubid
		WHERE s.relkind = 'S' AND s.relnamespace = current_schema()::regnamespace ORDER BY s.oid`,
	`SELECT 'CREATE VIEW ' || quote_ident(c.relname) || ' AS ' || pg_get_viewdef(c.oid, true) FROM pg_class c
		WHERE c.relkind = 'v' AND c.relnamespace = current_schema()::regnamespace ORDER BY c.oid`,
}

func (d *DB) writeScript(ctx context.Context, file string) error {
	out, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(out)
	err = d.postgres(ctx, `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`, func(pg *pgx.Conn) error {
		for _, part := range scriptParts {
			rows, err := pg.Query(ctx, part)
			if err != nil {
				return err
			}
			statements, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				return err
			}
			for _, s := range statements {
				if _, err := fmt.Fprintln(w, s); err != nil {
					return err
				}
				if table, rows := strings.CutSuffix(s, " FROM STDIN;"); rows {
					if _, err := pg.PgConn().CopyTo(ctx, w, table+" TO STDOUT"); err != nil {
						return err
					}
					if _, err := fmt.Fprintln(w, endOfRows); err != nil {
						return err
					}
				}
				if _, err := fmt.Fprintln(w, nextStatement); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err == nil {
		err = w.Flush()
	}
	return errors.Join(err, out.Close())
}

func (d *DB) readScript(ctx context.Context, file string) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was only read
	r := bufio.NewReaderSize(in, 1<<20)
	return d.postgres(ctx, `BEGIN`, func(pg *pgx.Conn) error {
		for {
			statement, err := untilLine(r, nextStatement)
			if errors.Is(err, io.EOF) && statement == "" {
				break
			}
			if err != nil {
				return err
			}
			if table, rows := strings.CutSuffix(statement, " FROM STDIN;\n"); rows {
				if _, err := pg.PgConn().CopyFrom(ctx, &rowsOf{r: r}, table+" FROM STDIN"); err != nil {
					return fmt.Errorf("%s: %w", table, err)
				}
				if _, err := untilLine(r, nextStatement); err != nil {
					return err
				}
				continue
			}
			if _, err := pg.PgConn().Exec(ctx, statement).ReadAll(); err != nil {
				return fmt.Errorf("%s: %w", strings.TrimSpace(statement), err)
			}
		}
		var there sql.NullString
		err := pg.QueryRow(ctx, `SELECT to_regclass('leases')::text`).Scan(&there)
		if err == nil && there.Valid {
			_, err = pg.Exec(ctx, releaseAll)
		}
		return err
	})
}

// untilLine reads lines until one that is last, or that begins rows, which it returns too.
func untilLine(r *bufio.Reader, last string) (string, error) {
	var b strings.Builder
	for {
		line, err := r.ReadString('\n')
		if err != nil || line == last+"\n" {
			return b.String(), err
		}
		b.WriteString(line)
		if strings.HasPrefix(b.String(), "COPY ") {
			return b.String(), nil
		}
	}
}

// rowsOf reads the rows of COPY up to endOfRows.
type rowsOf struct {
	r    *bufio.Reader
	left []byte // of a line
	mid  bool   // the last piece did not end its line
}

// Read implements io.Reader.
func (o *rowsOf) Read(p []byte) (int, error) {
	if len(o.left) == 0 {
		line, err := o.r.ReadSlice('\n')
		if !o.mid && string(line) == endOfRows+"\n" {
			return 0, io.EOF
		}
		if errors.Is(err, io.EOF) {
			return 0, io.ErrUnexpectedEOF
		}
		if o.mid = errors.Is(err, bufio.ErrBufferFull); err != nil && !o.mid {
			return 0, err
		}
		o.left = line
	}
	n := copy(p, o.left)
	o.left = o.left[n:]
	return n, nil
}
