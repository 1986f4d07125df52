package ledger

import (
	"testing"

	"github.com/newsfork/seed-engine/io/store/storetest"
	"github.com/stretchr/testify/require"
)

// TestUnmet has the reasons why runs that came to their end failed.
func TestUnmet(t *testing.T) {
	refused := func(job, kind string, in Input) DeadLetter {
		return DeadLetter{Job: job, RunID: "r1", Stage: "s", Kind: kind, Input: in, Error: "disk full"}
	}
	toKeep := Purpose{Kept: "kept", Refused: "refused"}
	sites := Purpose{Sites: "sites", SitesFailed: "sites_failed", SitesHeld: "sites_held"}
	for _, c := range []struct {
		name, job   string
		purpose     Purpose
		tally       Tally
		deadLetters []DeadLetter
		want        string // the error
	}{
		{"a run that kept something", "seed", toKeep, Tally{Counts: Counts{"kept": 1}, DeadLetters: Counts{"refused": 9}}, nil, ""},
		{"a run that had nothing to do", "seed", toKeep, Tally{}, nil, ""},
		{"a run that kept nothing", "seed", toKeep, Tally{DeadLetters: Counts{"refused": 2}},
			[]DeadLetter{refused("seed", "refused", Input{DomainID: "a"}), refused("seed", "refused", Input{DomainID: "b"}), refused("seed", "fetch_failed", Input{DomainID: "c"})},
			"the store refused everything that the run collected (one of the reasons: disk full): repair the store and run the same command again, which does the rest"},
		{"one whose dead letters are gone", "migrate", toKeep, Tally{DeadLetters: Counts{"refused": 1}}, nil,
			"the store refused everything that the run collected (see `errors`): repair the store and run the same command again, which does the rest"},
		{"every site failed", "catalog", sites, Tally{Counts: Counts{"sites": 2, "sites_failed": 2}},
			[]DeadLetter{refused("catalog", "list", Input{Source: "a"}), refused("catalog", "list", Input{Source: "b"}), refused("catalog", "page", Input{Source: "c", URL: "https://c.example/"})},
			"b: disk full\na: disk full"},
		{"one site of two failed", "catalog", sites, Tally{Counts: Counts{"sites": 2, "sites_failed": 1}}, nil, ""},
		{"a site on hold", "catalog", sites, Tally{Counts: Counts{"sites": 2, "sites_held": 1}}, nil, "no site could be crawled, or one is on hold: see the run's dead letters"},
		{"docs has partial runs", "docs", Purpose{}, Tally{DeadLetters: Counts{"refused": 1}}, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := storetest.NewMemory()
			for _, d := range c.deadLetters {
				require.NoError(t, Put(t.Context(), s, d))
			}
			err := c.purpose.Unmet(t.Context(), s, Run{RunID: "r1", Job: c.job}, c.tally)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, c.want)
		})
	}
}
