package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/io/store"
)

// usageError is bad usage, found before anything is started.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// Usage tells the program's exit code.
func (e *usageError) Usage() {}

// Settle settles the options that all runs share (cli.Serve): flags, and
// flags' values from the configuration file.
type Settle func(ctx context.Context, args []string, file map[string]string, stderr io.Writer) (store.Store, []string, *slog.Logger, error)

const usage = `server [flags]

Starts the server: dashboard, API, schedules and alerts. Its own flags:
  --listen=HOST:PORT  where it listens (default ` + DefaultListen + `); beyond loopback
                      the environment must hold a token in ` + TokenVariable + `
  --config=FILE       YAML: listen, flags, schedules, alerts, reports
  --pipeline=FILE     the pipeline program (default: the file pipeline next to this one,
                      else this program itself)
All other flags are those of ` + "`pipeline help`" + ` and apply to every run: --store, --db,
--runner, --web, --env, --concurrency … A webhook for alerts and reports is named by
` + WebhookVariable + ` in the environment.
`

// Main starts the server that args describe and works until a signal ends it.
// asPipeline is the first argument with which this very program is the
// pipeline.
func Main(args []string, asPipeline string, settle Settle, jobs []ledger.Job) (err error) {
	own := map[string]string{"listen": "", "config": "", "pipeline": ""}
	rest, err := take(args, own)
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, environ, log, err := settle(ctx, rest, config.FlagTexts(), os.Stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	server, err := New(Settings{Config: config, Jobs: jobs, Store: s, Program: program, Environ: environ, Log: log, Stderr: os.Stderr,
		Token: os.Getenv(TokenVariable), Webhook: os.Getenv(WebhookVariable)})
	if err != nil {
		return &usageError{err}
	}
	return server.Serve(ctx)
}

// take takes the values of flags out of args, in the forms of package flag.
func take(args []string, flags map[string]string) (rest []string, err error) {
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

// findPipeline gives the pipeline program: the one named, the one next to this
// program, else this program itself.
func findPipeline(named, asPipeline string) ([]string, error) {
	if named != "" {
		info, err := os.Stat(named)
		if err != nil {
			return nil, fmt.Errorf("--pipeline: %w", err)
		}
		if info.IsDir() || info.Mode()&0o111 == 0 {
			return nil, fmt.Errorf("--pipeline=%s is no program", named)
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
