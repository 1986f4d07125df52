//go:build e2e

package safety

import (
	"os"
	"testing"

	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

func TestMain(m *testing.M) { os.Exit(rig.Main(m)) }

func TestOurs(t *testing.T) {
	if !rig.Nightly {
		web := StartWeb(t, true)
		v := Run(t, web, Ours(t, web, ""), 25, 50)
		Row(t, "direct, few sites", v)
		Polite(t, v, 2)
		return
	}
	for name, args := range map[string][]string{"direct": {"--runner=direct"}, "prism": {"--runner=prism", "--lanes=4"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := StartWeb(t, false)
			v := Run(t, web, Ours(t, web, "", append(args, SharedServer)...), Kills...)
			Row(t, name, v)
			Polite(t, v, len(Kills))
		})
	}
}
