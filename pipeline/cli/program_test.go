package cli

import (
	"context"
	"io"
	"log/slog"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/pipeline/option"
)

// Main is the program without its server.
func Main(args []string, stdout, stderr io.Writer) int { return Program{}.Main(args, stdout, stderr) }

func dispatch(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	return Program{}.run(ctx, args, stdout, stderr)
}

// parseOptions are the options with which a run of this command line would start.
func parseOptions(args []string, stderr io.Writer) (o Options, err error) {
	p := &program{stdout: io.Discard, stderr: stderr, begin: func(context.Context) error { return nil }}
	err = p.execute(context.Background(), append([]string{"run"}, args...))
	return p.o, err
}

// Serve are the options with which a server of this command line would start.
func Serve(ctx context.Context, args []string, file map[string]string, stderr io.Writer) (s store.Store, environ []string, log *slog.Logger,
	find explore.Opener, check func(ctx context.Context, job string, flags []string) error, err error) {
	m := Program{Serve: func(ctx context.Context, _, _ string, options ServerOptions, _ []option.Job) (err error) {
		s, environ, log, find, check, err = options(ctx, file)
		return err
	}}
	err = m.run(ctx, append([]string{"serve"}, args...), io.Discard, stderr)
	return s, environ, log, find, check, err
}
