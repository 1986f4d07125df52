package launch

import (
	"cmp"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/lineage"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

// lineageWithin bounds how long the end of the program waits for a collector.
const lineageWithin = time.Second

// openLineage prepares the sending of events, if the environment names a collector.
func (r *run) openLineage() (err error) {
	r.lineage, err = lineage.FromEnv(os.Getenv, func(err error) {
		r.log(r.id).Warn("lineage_not_sent", "error", ledger.Redact(err.Error()), "why", "the run continues, and later failures are not logged")
	})
	if err != nil {
		return usage.Errorf("%w", err)
	}
	r.undo = append(r.undo, func() error { r.lineage.Close(lineageWithin); return nil })
	return nil
}

// event is the begin of a run, or its end with the report.
func (r *run) event(record ledger.Run, end *ledger.Report) lineage.Event {
	e := lineage.Event{State: lineage.Start, At: record.StartedAt, RunID: record.RunID, Job: record.Job, Streaming: r.o.Streaming}
	var c ledger.Counts
	if end != nil {
		c, e.At = end.Counts, *end.FinishedAt
		switch end.State {
		case ledger.Done:
			e.State = lineage.Complete
		case ledger.Cancelled, ledger.Interrupted:
			e.State = lineage.Abort
		default:
			e.State, e.Error = lineage.Fail, end.Error
		}
	}
	j := r.o.Target()
	kept := c[cmp.Or(j.Purpose.Kept, j.LiveCount)]
	place, at := storePlace(r.cfg.Store)
	if j.Input != nil {
		key := r.o.Roots.Key(hive.Datasets)
		e.Inputs = []lineage.Dataset{{Namespace: place, Name: path.Join(at, key), Rows: c["records"], Files: c["files_read"]}}
	}
	for _, prefix := range j.Keeps {
		e.Outputs = append(e.Outputs, lineage.Dataset{Namespace: place, Name: path.Join(at, r.o.Roots.Key(prefix)), Rows: kept})
	}
	place, at = databasePlace(r.o.DB)
	for _, table := range j.Tables {
		e.Outputs = append(e.Outputs, lineage.Dataset{Namespace: place, Name: at + "." + table, Rows: kept})
	}
	return e
}

// storePlace returns a store as OpenLineage names it: its bucket, or file for a directory; and the path in there.
func storePlace(at string) (namespace, name string) {
	if u, err := url.Parse(at); err == nil && u.Scheme != "" {
		return u.Scheme + "://" + u.Host, u.Path
	}
	return "file", at
}

// databasePlace does the same for a database. Tables are in the schema public there.
func databasePlace(dsn string) (namespace, name string) {
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return "sqlite", strings.TrimPrefix(dsn, "sqlite://")
	}
	host := u.Host
	if u.Port() == "" {
		host += ":5432"
	}
	return "postgres://" + host, path.Base(u.Path) + ".public"
}
