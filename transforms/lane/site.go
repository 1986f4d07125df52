package lane

import (
	"context"

	"github.com/newsfork/seed-engine/io/ledger"
	"github.com/newsfork/seed-engine/transforms/site"
)

// Site returns in which state the runs before found a site. name is its name in the job:
// a provider, a publisher, a site file.
func (w *Worker) Site(ctx context.Context, name string) (site.Streak, error) {
	st, err := ledger.ReadSite(ctx, w.Store, w.cfg.Job, name)
	return site.Streak{State: site.State(st.State), Runs: st.Runs}, err
}

// KeepSite keeps what this run found about a site, for the report, the alerts and the next
// runs. The caller has the job's lease of the site.
func (w *Worker) KeepSite(ctx context.Context, name string, v site.Verdict) error {
	before, err := w.Site(ctx, name)
	if err != nil {
		return err
	}
	switch {
	case v.State != site.Open:
		w.Log.Warn("site_not_open", "site", name, "state", v.State, "cause", v.Cause, "advice", v.Advice, "evidence", v.Evidence)
	case before.State != "" && before.State != site.Open:
		w.Log.Info("site_open_again", "site", name, "was", before.State)
	}
	return ledger.KeepSite(ctx, w.Store, ledger.SiteState{Job: w.cfg.Job, Site: name, State: string(v.State), RunID: w.cfg.RunID,
		Cause: v.Cause, Advice: v.Advice, Evidence: v.Evidence}, w.Pacer.Clock.Now())
}
