package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/option"
)

// usageError is a wrong flag, file or value. It is found before anything starts.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// Usage marks the error for the program's exit code.
func (e *usageError) Usage() {}

// ReadOptions reads the options that all runs share, from args and from the flags in
// the configuration file. It returns the store, the environment for the runs, and
// the log, what opens where a job keeps what it found, and what refuses a run that could not start; see Settings.Check. It is cli.Serve.
type ReadOptions func(ctx context.Context, args []string, file map[string]string, stderr io.Writer) (store.Store, []string, *slog.Logger,
	explore.Opener, func(ctx context.Context, job string, flags []string) error, error)

const usage = `server [flags]

Starts the server: dashboard, API, schedules and alerts. Its own flags:
  --listen=HOST:PORT  where it listens (default ` + DefaultListen + `); beyond loopback
                      the environment must have a token in ` + TokenVariable + `
  --config=FILE       YAML: listen, flags, schedules, alerts, email, reports, retention, bot
  --pipeline=FILE     the pipeline program (default: the file pipeline next to this one,
                      else this program itself)
All other flags are those of ` + "`pipeline help`" + ` and apply to every run: --store, --db,
--runner, --web, --env, --concurrency … Alerts and reports go to Slack if the
environment has the URL of its webhook in ` + WebhookVariable + `, to any other program by a signed
request (` + AlertURLVariable + `, ` + AlertSecretVariable + `), and by e-mail if --config has email.
`

// Main starts the server that args describe and serves until ctx ends. asPipeline is
// the first argument that makes this program the pipeline program.
func Main(ctx context.Context, args []string, asPipeline string, readOptions ReadOptions, jobs []option.Job) (err error) {
	own := map[string]string{"listen": "", "config": "", "pipeline": ""}
	rest, err := extractFlags(args, own)
	if err != nil {
		return &usageError{err}
	}
	if slices.ContainsFunc(rest, func(a string) bool { return slices.Contains([]string{"help", "-h", "-help", "--help"}, a) }) {
		_, err := fmt.Print(usage)
		return err
	}
	config, err := ReadConfig(own["config"], jobs)
	if err != nil {
		return &usageError{err}
	}
	if own["listen"] != "" {
		config.Listen = own["listen"]
	}
	program, err := findPipeline(own["pipeline"], asPipeline)
	if err != nil {
		return &usageError{err}
	}
	set := Settings{Config: config, Jobs: jobs, Program: program, Stderr: os.Stderr}
	for name, secret := range map[string]*string{TokenVariable: &set.Token, ReadTokenVariable: &set.ReadToken, WebhookVariable: &set.Webhook, AlertURLVariable: &set.AlertURL,
		AlertSecretVariable: &set.AlertSecret, SMTPPasswordVariable: &set.SMTPPassword} {
		if *secret, err = readSecret(name); err != nil {
			return &usageError{err}
		}
	}
	if _, err := set.checkListen(); err != nil { // before the store is opened, which copies the sample bucket
		return &usageError{err}
	}
	if set.Store, set.Environ, set.Log, set.Open, set.Check, err = readOptions(ctx, rest, config.FlagTexts(), os.Stderr); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Store.Close()) }()
	server, err := New(set)
	if err != nil {
		return &usageError{err}
	}
	return server.Serve(ctx)
}

// extractFlags sets the values of flags from args, in the forms of package flag, and
// returns the other args.
func extractFlags(args []string, flags map[string]string) (rest []string, err error) {
	for i := 0; i < len(args); i++ {
		name, value, has := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		if _, ours := flags[name]; !ours || !strings.HasPrefix(args[i], "-") {
			rest = append(rest, args[i])
			continue
		}
		if !has {
			if i++; i == len(args) {
				return nil, fmt.Errorf("--%s needs a value", name)
			}
			value = args[i]
		}
		if value == "" {
			return nil, fmt.Errorf("--%s= is empty; give a value, or leave it out", name)
		}
		flags[name] = value
	}
	return rest, nil
}

// findPipeline returns the command of the pipeline program: the named one, else the
// one next to this program, else this program itself.
func findPipeline(named, asPipeline string) ([]string, error) {
	if named != "" {
		info, err := os.Stat(named)
		if err != nil {
			return nil, fmt.Errorf("--pipeline: %w", err)
		}
		if info.IsDir() || info.Mode()&0o111 == 0 {
			return nil, fmt.Errorf("--pipeline=%s is not an executable file", named)
		}
		abs, err := filepath.Abs(named)
		return []string{abs}, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w; name the pipeline by --pipeline", err)
	}
	next := filepath.Join(filepath.Dir(self), "pipeline")
	if info, err := os.Stat(next); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
		return []string{next}, nil
	}
	return []string{self, asPipeline}, nil
}
