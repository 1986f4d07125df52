package launch

import (
	"context"
	"errors"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/usage"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// Run does what the options ask for: a run of the job, a watch, or what one of
// the job's flags asks for in place of a run.
func Run(ctx context.Context, o Options, stdout, stderr io.Writer) (err error) {
	j := o.Target()
	if o.DB, err = takePassword(o.DB); err != nil {
		return err
	}
	if j.Prepare != nil && o.Estimate == "" {
		if err := j.Prepare(ctx, &o.RunOptions); err != nil {
			return err
		}
	}
	s, err := OpenStore(ctx, &o, stderr)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }() // every write was confirmed by its own call
	if j.Accept != nil && !o.beamDryRun() {
		if err := j.Accept(ctx, s, &o.RunOptions); err != nil {
			return err
		}
	}
	if a := o.action(); a != nil {
		return a.Do(ctx, o.RunOptions, s, stdout)
	}
	if !o.beamDryRun() {
		if err := o.enterWeb(ctx, s); err != nil {
			return err
		}
	}
	if o.Web == "demo" && j.DemoNotice != "" {
		if err := notice(o, stderr, "demo_hurries", j.DemoNotice); err != nil {
			return err
		}
	}
	if o.Watch > 0 && o.Streaming {
		return stream(ctx, s, o, stdout, stderr)
	}
	if o.Watch > 0 && !o.beamDryRun() { // a dry run prints the graph, which is the same for each batch
		return watch(ctx, s, o, stdout, stderr)
	}
	runID := ""
	err = runGraph(ctx, s, o, stdout, stderr, func(scope beam.Scope, l lane.Config, forceID string) {
		runID = l.RunID
		j.Build(scope, j.Config(o.RunOptions, l, forceID))
	})
	if j.Write == nil || runID == "" {
		return err
	}
	if o.Report == "-" { // nothing else is on standard output
		stdout = io.Discard
	}
	return errors.Join(err, j.Write(ctx, s, runID, stdout))
}

// takePassword moves a DSN's password into this process's environment: a runner
// may send the configuration anywhere, and show it to anybody.
func takePassword(dsn string) (string, error) {
	if !strings.HasPrefix(dsn, "postgres") {
		return dsn, nil
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return "", usage.Errorf("--db is no URL; write postgres://user@host/database")
	}
	password, ok := u.User.Password()
	if !ok {
		return dsn, nil
	}
	u.User = url.User(u.User.Username())
	return u.String(), os.Setenv("PGPASSWORD", password)
}

// graph builds the pipeline of one run.
type graph func(s beam.Scope, l lane.Config, forceID string)

// runGraph runs a job's graph once, from the lease to the report.
func runGraph(ctx context.Context, s store.Store, o Options, stdout, stderr io.Writer, build graph) (err error) {
	if o.beamDryRun() {
		return printDataflow(ctx, o, stdout, build)
	}
	r, err := start(ctx, s, o, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	report, _, err := r.once(ctx, r.id, build)
	if report == nil {
		return err
	}
	return errors.Join(err, writeReport(o, *report, stdout, stderr))
}

// flinkMaxCall is long, because Beam's job servers before apache/beam#39191 keep
// some state for each call of a lister that ended. (They never split a lister.)
const flinkMaxCall = 10 * time.Minute

// stream runs the unbounded graph until it is stopped.
func stream(ctx context.Context, s store.Store, o Options, stdout, stderr io.Writer) error {
	maxCall := time.Duration(0)
	if o.viaJobServer() {
		maxCall = flinkMaxCall
	}
	return runGraph(ctx, s, o, stdout, stderr, func(scope beam.Scope, l lane.Config, _ string) {
		l.Leases, l.Running = true, true
		o.Target().Watch.Stream(scope, o.RunOptions, l, maxCall)
	})
}
