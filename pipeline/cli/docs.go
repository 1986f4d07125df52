package cli

import (
	"context"
	"flag"
	"io"

	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

const docsUsage = `pipeline docs unblock PROVIDER [URL] [--db=…]
                                  requests pages again that answered 403, which no run requests:
                                  the one at the URL, or all of the provider
`

// docsCommand runs the sub-commands of the docs job.
func docsCommand(ctx context.Context, args []string, stdout, _ io.Writer) error {
	o, w, err := controlOptions(flag.NewFlagSet("docs", flag.ContinueOnError), args, "db")
	if err != nil {
		return err
	}
	if len(w) < 2 || len(w) > 3 || w[0] != "unblock" {
		return usage.Errorf("docs takes unblock, a provider and at most one URL; write pipeline docs unblock stripe (a run of the job: pipeline --job=docs)")
	}
	o.Job = "docs"
	if err := o.placeDB(); err != nil {
		return err
	}
	return pipeline.Unblock(ctx, o.DB, w[1], append(w, "")[2], stdout)
}
