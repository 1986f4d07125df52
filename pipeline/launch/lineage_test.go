package launch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/lineage"
	"github.com/newsfork/seed-engine/pipeline"
)

// The events of a run name what its job reads and writes, and how it ended.
func TestLineage(t *testing.T) {
	at := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	end := at.Add(time.Hour)
	in := func(rows, files int64) []lineage.Dataset {
		return []lineage.Dataset{{Namespace: "s3://b", Name: "raw", Rows: rows, Files: files}}
	}
	out := func(rows int64) []lineage.Dataset {
		return []lineage.Dataset{{Namespace: "s3://b", Name: "processing", Rows: rows}, {Namespace: "s3://b", Name: "tables/domains", Rows: rows}}
	}
	o := parsed(t, "")
	o.Jobs, o.Job, o.Store, o.Roots.Raw = pipeline.All(), "seed", "s3://b?region=x", "raw/"
	r := &run{o: o, job: "seed", cfg: o.LaneConfig()}
	record := ledger.Run{RunID: "r1", Job: "seed", StartedAt: at}
	require.Equal(t, lineage.Event{State: lineage.Start, At: at, RunID: "r1", Job: "seed", Inputs: in(0, 0), Outputs: out(0)}, r.event(record, nil))
	for state, want := range map[ledger.State]lineage.State{ledger.Done: lineage.Complete, ledger.Failed: lineage.Fail, ledger.Cancelled: lineage.Abort, ledger.Interrupted: lineage.Abort} {
		report := &ledger.Report{State: state, FinishedAt: &end, Error: "why", Counts: ledger.Counts{"records": 40, "files_read": 2, "domains_collected": 30}}
		event := lineage.Event{State: want, At: end, RunID: "r1", Job: "seed", Inputs: in(40, 2), Outputs: out(30)}
		if want == lineage.Fail {
			event.Error = "why"
		}
		require.Equal(t, event, r.event(record, report))
	}
	for dsn, want := range map[string][2]string{
		"postgres://u:p@h/d":           {"postgres://h:5432", "d.public"},
		"postgresql://h:99/d?x=y":      {"postgres://h:99", "d.public"},
		"sqlite:///var/lib/docs.db":    {"sqlite", "/var/lib/docs.db"},
		"sqlite://out/seed-engine.db ": {"sqlite", "out/seed-engine.db "},
	} {
		place, name := databasePlace(dsn)
		require.Equal(t, want, [2]string{place, name})
	}
	place, name := storePlace("/var/lib/out")
	require.Equal(t, [2]string{"file", "/var/lib/out"}, [2]string{place, name})
}
