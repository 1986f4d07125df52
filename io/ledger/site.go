package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/store"
)

// SiteOpen is the state of a site that shows what it showed. The other states are those of
// transforms/site.
const SiteOpen = "open"

// SiteState is what a job's runs found about one site: a docs provider, a catalog site, a
// publisher. It is the object sites/{job}/{site}.json. Only the process that has the job's
// lease of the site writes it.
type SiteState struct {
	Job       string       `json:"job"`
	Site      string       `json:"site"`
	State     string       `json:"state"`
	Since     time.Time    `json:"since"`      // of the state
	CheckedAt time.Time    `json:"checked_at"` // by the last run
	RunID     string       `json:"run_id"`     // of the last run
	Runs      int          `json:"runs"`       // in a row that found the state
	Cause     string       `json:"cause,omitempty"`
	Advice    string       `json:"advice,omitempty"`
	Evidence  []string     `json:"evidence,omitempty"`
	History   []siteChange `json:"history,omitempty"` // the states before, newest first
}

// siteChange is an earlier state of a site.
type siteChange struct {
	State string    `json:"state"`
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	Cause string    `json:"cause,omitempty"`
}

// maxSiteHistory is how many earlier states of a site are kept.
const maxSiteHistory = 50

func siteKey(job, site string) string { return "sites/" + job + "/" + site + ".json" }

// ReadSite returns what earlier runs found about a site, the zero value if none did.
func ReadSite(ctx context.Context, s store.Store, job, site string) (SiteState, error) {
	old, err := load[SiteState](ctx, s, siteKey(job, site))
	if errors.Is(err, store.ErrNotExist) {
		return SiteState{}, nil
	}
	return old, err
}

// KeepSite writes what a run found about a site, with the history.
func KeepSite(ctx context.Context, s store.Store, st SiteState, now time.Time) error {
	old, err := ReadSite(ctx, s, st.Job, st.Site)
	if err != nil {
		return err
	}
	st.CheckedAt, st.Since, st.Runs, st.History = now.UTC(), now.UTC(), 1, old.History
	switch {
	case old.State == st.State:
		st.Since, st.Runs = old.Since, old.Runs
		if old.RunID != st.RunID {
			st.Runs++
		}
	case old.State != "":
		st.History = slices.Insert(st.History, 0, siteChange{old.State, old.Since, st.Since, old.Cause})
		st.History = st.History[:min(len(st.History), maxSiteHistory)]
	}
	return store.WriteJSON(ctx, s, siteKey(st.Job, st.Site), st)
}

// RemoveSite removes what is known of a site.
func RemoveSite(ctx context.Context, s store.Store, job, site string) error {
	return store.Remove(ctx, s, siteKey(job, site))
}

// Sites returns what the runs of a job found about its sites, by name.
func Sites(ctx context.Context, s store.Store, job string) (all []SiteState, err error) {
	for o, err := range s.List(ctx, "sites/"+job+"/") {
		if err != nil {
			return nil, fmt.Errorf("listing the states of sites: %w", err)
		}
		st, err := load[SiteState](ctx, s, o.Key)
		if errors.Is(err, store.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		all = append(all, st)
	}
	return all, nil
}

// AddSites adds to a report the sites that its run judged, and one alert for each cause.
func (r *Report) AddSites(all []SiteState) {
	for _, st := range all {
		if st.RunID == r.RunID {
			st.History = nil
			r.Sites = append(r.Sites, st)
		}
	}
	texts := map[string][]string{}
	for _, st := range r.NotOpen() {
		texts[st.State] = append(texts[st.State], st.Site+": "+st.Text())
	}
	for _, state := range slices.Sorted(maps.Keys(texts)) {
		r.Alerts = append(r.Alerts, sitesText(state, texts[state]))
	}
}

// NotOpen are the sites of a report that were not open at its run's end.
func (r *Report) NotOpen() []SiteState {
	return slices.DeleteFunc(slices.Clone(r.Sites), func(st SiteState) bool { return st.State == SiteOpen })
}

// Text is the cause of a site's state, and the advice.
func (st SiteState) Text() string {
	return strings.TrimSuffix(cmp.Or(st.Cause, "it is "+st.State)+": "+st.Advice, ": ")
}

// maxSitesTold is how many sites one message names.
const maxSitesTold = 50

// sitesText is the one message about all sites in a state.
func sitesText(state string, texts []string) string {
	what, of := "1 site is ", "it"
	if len(texts) != 1 {
		what, of = fmt.Sprintf("%d sites are ", len(texts)), "them"
	}
	if more := len(texts) - maxSitesTold; more > 0 {
		texts = append(slices.Clone(texts[:maxSitesTold]), fmt.Sprintf("and %d more", more))
	}
	return what + state + "; what is stored of " + of + " stays: " + strings.Join(texts, "; ")
}
