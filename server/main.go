package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/secret"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/server/known"
)

// usageError is a wrong flag, file or value. It is found before anything starts.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// Usage marks the error for the program's exit code.
func (e *usageError) Usage() {}

// ReadOptions reads the options that all runs share, from the command line and from the flags in
// the configuration file. It returns the store, the environment for the runs, and
// the log, what opens where a job keeps what it found, and what refuses a run that could not start. It is cli.ServerOptions.
type ReadOptions = func(ctx context.Context, file map[string]string) (store.Store, []string, *slog.Logger,
	explore.Opener, option.Runs, error)

// Main starts the server and serves until ctx ends. It listens at an address, "": by its configuration, which is in a file, "": none.
// The runs that it starts are processes of this program.
func Main(ctx context.Context, listen, file string, readOptions ReadOptions, jobs []option.Job) (err error) {
	config, err := ReadConfig(file, jobs)
	if err != nil {
		return &usageError{err}
	}
	if listen != "" {
		config.Listen = listen
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program, which does the runs: %w", err)
	}
	set := Settings{Config: config, Jobs: jobs, Program: []string{self}, Stderr: os.Stderr}
	for name, value := range map[string]*string{known.TokenVariable: &set.Token, known.ReadTokenVariable: &set.ReadToken,
		known.WebhookVariable: &set.Webhook, known.AlertURLVariable: &set.AlertURL,
		known.AlertSecretVariable: &set.AlertSecret, known.SMTPPasswordVariable: &set.SMTPPassword} {
		if *value, err = secret.Read(name); err != nil {
			return &usageError{err}
		}
	}
	if _, err := set.checkListen(); err != nil { // before the store is opened, which copies the sample bucket
		return &usageError{err}
	}
	if set.Store, set.Environ, set.Log, set.Open, set.Runs, err = readOptions(ctx, config.FlagTexts()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Store.Close()) }()
	server, err := New(set)
	if err != nil {
		return &usageError{err}
	}
	return server.Serve(ctx)
}
