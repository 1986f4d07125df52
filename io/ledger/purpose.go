package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/newsfork/seed-engine/io/store"
)

// Purpose is what a job's runs are for, by the names of their counts. A run that
// came to its end and missed it has failed. The zero value is missed by none.
type Purpose struct {
	// Kept counts what a run keeps. A run that kept nothing missed its purpose where
	// it left dead letters of the kind Refused: of what its store did not take.
	Kept    string `json:"kept,omitempty"`
	Refused string `json:"refused,omitempty"`
	// Sites counts the sites that a run crawls. It missed its purpose where all are
	// among SitesFailed, and where one is among SitesHeld: that one brings nothing
	// until a person has mended its file.
	Sites       string `json:"sites,omitempty"`
	SitesFailed string `json:"sites_failed,omitempty"`
	SitesHeld   string `json:"sites_held,omitempty"`
}

// Unmet is why a run that came to its end has failed all the same: it did not do
// what its job is for. It is nil where the run did.
func (p Purpose) Unmet(ctx context.Context, s store.Store, r Run, t Tally) error {
	switch {
	case p.Kept != "" && t.DeadLetters[p.Refused] > 0 && t.Counts[p.Kept] == 0:
		reason := errors.New("see `dead-letters list`")
		whys := whyFailed(ctx, s, r, 1, func(d DeadLetter) bool { return d.Kind == p.Refused })
		if len(whys) > 0 {
			reason = fmt.Errorf("one of the reasons: %w", whys[0])
		}
		return fmt.Errorf("nothing that the run brought could be kept (%w): see to the store, and run the same command again, which does what is missing", reason)
	case p.Sites != "" && (t.Counts[p.SitesHeld] > 0 || t.Counts[p.Sites] > 0 && t.Counts[p.SitesFailed] == t.Counts[p.Sites]):
		whys := whyFailed(ctx, s, r, 0, func(d DeadLetter) bool { return d.Input.Source != "" && d.Input.URL == "" })
		if len(whys) == 0 {
			return errors.New("no site could be crawled, or one is on hold: see the run's dead letters")
		}
		return errors.Join(whys...)
	}
	return nil
}

// whyFailed reads the errors of a run's dead letters, so many at most; 0: all.
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
