package cli

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/launch"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

// defaultStore is where the sample bucket is copied to.
const defaultStore = "out"

// check refuses options with which nothing can run. line has the flags of the command line.
func (o *Options) check(line []string, stderr io.Writer) error {
	j, known := pipeline.Find(o.Jobs, o.Job)
	if !known {
		return pipeline.NoJob(o.Job)
	}
	o.WorkersElsewhere = o.Elsewhere()
	for _, check := range []func() error{
		o.Flags.Check, o.checkWeb,
		func() error {
			if j.Check == nil {
				return nil
			}
			return j.Check(&o.RunOptions)
		},
		func() error { return o.Flags.CheckLine(o.Job, line) },
		o.place, o.Check, o.CheckEstimate, o.checkReport, o.checkTurns, // the last: it makes a file
	} {
		if err := check(); err != nil {
			return err
		}
	}
	if in := j.Input; o.Sample && o.Filtered() && in != nil {
		if err := in.SampleMatches(&o.RunOptions); err != nil {
			return err
		}
	}
	o.fillIn(launch.IsTerminal(stderr))
	return nil
}

// checkTurns makes the file that --turns names, where the workers are in this process.
func (o *Options) checkTurns() error {
	if o.Turns == polite.OwnTurns || o.WorkersElsewhere || o.Preview() { // nothing is made before a run, or without one
		return nil
	}
	if _, err := new(polite.Pacer).Share(o.Turns, ""); err != nil {
		return usage.Errorf("--turns: %w", err)
	}
	return nil
}

func (o *Options) checkWeb() error {
	switch {
	case o.Web == "demo" && o.Elsewhere():
		return usage.Errorf("--web=demo lives in this process, and %s has workers elsewhere; use --runner=direct or prism", o.Runner)
	case o.Web == "demo" && o.ConnectTo != "":
		return usage.Errorf("--web=demo and --connect-to both say where requests go; give one")
	case o.ConnectTo != "" && !launch.HostPort(o.ConnectTo):
		return usage.Errorf("--connect-to=%s: write host:port", o.ConnectTo)
	}
	return o.ReadBot(!o.Elsewhere())
}

// fillIn sets the options that were not given and whose value depends on others.
func (o *Options) fillIn(terminal bool) {
	if o.LogFormat == "" {
		o.LogFormat = "json"
		if terminal {
			o.LogFormat = "text"
		}
	}
	if o.LogLevel == "" {
		o.LogLevel = "info"
		if terminal && o.LogFormat == "text" {
			o.LogLevel = "warn"
		}
	}
	if o.Lanes == 0 {
		o.Lanes, o.LanesByInput = 1, true
		if o.Remote() {
			o.Lanes = 16 * o.Slots()
		}
	}
}

// place works out the store.
func (o *Options) place() error {
	switch {
	case o.Store == "" && o.Env != "" && !strings.Contains(o.DB, "{env}"):
		return usage.Errorf("--env=%s: without --store there is no {env} to fill; add --store=r2://newsfork-datasets-{env}", o.Env)
	case o.Store == "":
		o.Store, o.Sample = cmp.Or(o.home, defaultStore), !o.Target().SQL
	case o.Store == "mem://": // the one without a name
		o.Store = "mem://default"
	case strings.Contains(o.Store, "{env}"):
		if o.Env == "" {
			return usage.Errorf("--store=%s: {env} has no value; add --env=dev, staging or prod", o.Store)
		}
		o.Store = strings.ReplaceAll(o.Store, "{env}", o.Env)
	}
	if absent := o.Target().SQL && o.isNew(); absent && o.Alone() {
		o.Store = "mem://none"
	} else {
		o.Fresh = absent
	}
	roots, err := store.NewRoots(o.Roots.Raw, o.Roots.Results)
	if err != nil {
		return usage.Errorf("--raw-prefix=%s --results-prefix=%s: %w", o.Roots.Raw, o.Roots.Results, err)
	}
	o.Roots = roots
	return o.placeDB()
}

// isNew reports whether the store is a directory that is not there and may be made: one that a relative path names. A missing
// directory with an absolute path may be on a volume that is not mounted.
func (o *Options) isNew() bool {
	path, local := localPath(o.Store)
	_, err := os.Stat(path)
	return local && !filepath.IsAbs(path) && errors.Is(err, fs.ErrNotExist)
}

// placeDB works out the database.
func (o *Options) placeDB() error {
	if !o.Target().SQL {
		return nil
	}
	switch {
	case strings.Contains(o.DB, "{env}"):
		if o.Env == "" {
			return usage.Errorf("--db: {env} has no value; add --env=dev, staging or prod")
		}
		o.DB = strings.ReplaceAll(o.DB, "{env}", o.Env)
	case o.DB == "" && !launch.LocalStore(o.Store):
		return usage.Errorf("--job=%s needs --db; add --db=sqlite:///path or --db=postgres://…", o.Job)
	case o.DB == "" && strings.HasPrefix(o.Store, "mem://"):
		o.DB = "sqlite:///:memory:"
	case o.DB == "":
		next, err := filepath.Abs(strings.TrimPrefix(o.Store, "file://"))
		if err != nil {
			return usage.Errorf("--db: finding the directory of --store: %w", err)
		}
		o.DB = "sqlite://" + filepath.ToSlash(next) + ".db"
	}
	lite := strings.HasPrefix(o.DB, "sqlite:///")
	u, err := url.Parse(o.DB)
	switch {
	case !lite && !strings.HasPrefix(o.DB, "postgres://") && !strings.HasPrefix(o.DB, "postgresql://"):
		return usage.Errorf("--db: write sqlite:///path, or postgres:// with user@host/database after it")
	case lite:
	case err != nil:
		return usage.Errorf("--db is no URL; write postgres://user@host/database")
	}
	if !o.Elsewhere() || lite && o.SharedFilesystem && o.Runner != "dataflow" {
		return nil
	}
	if lite {
		return usage.Errorf("--db=%s is seen by this machine only, and %s has workers elsewhere; use postgres://", o.DB, o.Runner)
	}
	if _, password := u.User.Password(); password && o.DB != os.Getenv("SEED_DB") {
		return usage.Errorf("--db has a password in it, and %s shows the options to everybody who may see the job; leave the password out, and set SEED_DB or PGPASSFILE in the workers' environment", o.Runner)
	} else if password { // the workers take theirs from their own environment
		u.User = url.User(u.User.Username())
		o.DB = u.String()
	}
	return nil
}

// checkReport checks before the run that its report can be written.
func (o *Options) checkReport() error {
	switch {
	case o.Report == "":
		return nil
	case o.Preview():
		return usage.Errorf("--report=%s: a preview makes no report; leave --report out", o.Report)
	case o.Report == "-":
		return nil
	}
	if info, err := os.Stat(o.Report); err == nil && info.IsDir() {
		return usage.Errorf("--report=%s is a directory; name a file, or - for standard output", o.Report)
	}
	if info, err := os.Stat(filepath.Dir(o.Report)); err != nil || !info.IsDir() {
		return usage.Errorf("--report=%s: there is no directory %s; create it first", o.Report, filepath.Dir(o.Report))
	}
	return nil
}
