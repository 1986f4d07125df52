package ledger

import (
	"testing"

	"github.com/newsfork/seed-engine/io/store/storetest"
	"github.com/stretchr/testify/require"
)

// TestUnmet gives the reason why a run failed that came to its end without what
// its job is for.
func TestUnmet(t *testing.T) {
	refused := func(job, kind string, in Input) DeadLetter {
		return DeadLetter{Job: job, RunID: "r1", Stage: "s", Kind: kind, Input: in, Error: "disk full"}
	}
	for _, c := range []struct {
		name, job string
		tally     Tally
		letters   []DeadLetter
		want      string // of the error
	}{
		{"a run that kept something", "seed", Tally{Counts: Counts{"domains_collected": 1}, DeadLetters: Counts{"store_failed": 9}}, nil, ""},
		{"a run that had nothing to do", "seed", Tally{}, nil, ""},
		{"a run that kept nothing", "seed", Tally{DeadLetters: Counts{"store_failed": 2}},
			[]DeadLetter{refused("seed", "store_failed", Input{DomainID: "a"}), refused("seed", "store_failed", Input{DomainID: "b"}), refused("seed", "fetch_failed", Input{DomainID: "c"})},
			"nothing that the run brought could be kept (one of the reasons: disk full): see to the store, and run the same command again, which does what is missing"},
		{"one whose dead letters are gone", "migrate", Tally{DeadLetters: Counts{"copy_failed": 1}}, nil,
			"nothing that the run brought could be kept (see `dead-letters list`): see to the store, and run the same command again, which does what is missing"},
		{"every site failed", "catalog", Tally{Counts: Counts{"sites": 2, "sites_failed": 2}},
			[]DeadLetter{refused("catalog", "list", Input{Source: "a"}), refused("catalog", "list", Input{Source: "b"}), refused("catalog", "page", Input{Source: "c", URL: "https://c.example/"})},
			"b: disk full\na: disk full"},
		{"one site of two failed", "catalog", Tally{Counts: Counts{"sites": 2, "sites_failed": 1}}, nil, ""},
		{"a site on hold", "catalog", Tally{Counts: Counts{"sites": 2, "sites_held": 1}}, nil, "no site could be crawled, or one is on hold: see the run's dead letters"},
		{"docs has partial runs", "docs", Tally{DeadLetters: Counts{"store_failed": 1}}, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := storetest.NewMemory()
			for _, d := range c.letters {
				require.NoError(t, Put(t.Context(), s, d))
			}
			err := c.tally.Unmet(t.Context(), s, c.job, "r1")
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, c.want)
		})
	}
}
