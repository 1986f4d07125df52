package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/newsfork/seed-engine/io/store"
)

// Purpose says, by the names of a job's counts, what its runs must achieve. A run that
// came to its end without it has failed. Every run fulfils the zero value.
type Purpose struct {
	// Kept counts what a run stores. A run that stored nothing has failed if it left dead
	// letters of the kind Refused, which are for results that the store refused.
	Kept    string `json:"kept,omitempty"`
	Refused string `json:"refused,omitempty"`
	// Sites counts the sites that a run crawls. A run has failed if all of them are in
	// SitesFailed, or if one is in SitesHeld: such a site cannot be crawled until a
	// person has corrected its file.
	Sites       string `json:"sites,omitempty"`
	SitesFailed string `json:"sites_failed,omitempty"`
	SitesHeld   string `json:"sites_held,omitempty"`
}

// Unmet returns why a run that came to its end has failed: it did not fulfil its
// purpose. It returns nil if the run did.
func (p Purpose) Unmet(ctx context.Context, s store.Store, r Run, t Tally) error {
	switch {
	case p.Kept != "" && t.DeadLetters[p.Refused] > 0 && t.Counts[p.Kept] == 0:
		reason := errors.New("see `errors`")
		whys := whyFailed(ctx, s, r, 1, func(d DeadLetter) bool { return d.Kind == p.Refused })
		if len(whys) > 0 {
			reason = fmt.Errorf("one of the reasons: %w", whys[0])
		}
		return fmt.Errorf("the store refused everything that the run collected (%w): repair the store and run the same command again, which does the rest", reason)
	case p.Sites != "" && (t.Counts[p.SitesHeld] > 0 || t.Counts[p.Sites] > 0 && t.Counts[p.SitesFailed] == t.Counts[p.Sites]):
		whys := whyFailed(ctx, s, r, 0, func(d DeadLetter) bool { return d.Input.Source != "" && d.Input.URL == "" })
		if len(whys) == 0 {
			return errors.New("no site could be crawled, or one is on hold: see the run's dead letters")
		}
		return errors.Join(whys...)
	}
	return nil
}

// whyFailed reads the errors of a run's dead letters that of selects: at most most of
// them, or all if most is 0.
func whyFailed(ctx context.Context, s store.Store, r Run, most int, of func(DeadLetter) bool) (whys []error) {
	for d, err := range ListDeadLetters(ctx, s, r.Job, r.RunID) {
		switch {
		case err != nil:
			whys = append(whys, err)
		case of(d) && d.Input.Source != "":
			whys = append(whys, fmt.Errorf("%s: %s", d.Input.Source, d.Error))
		case of(d):
			whys = append(whys, errors.New(d.Error))
		}
		if most > 0 && len(whys) == most {
			break
		}
	}
	return whys
}
