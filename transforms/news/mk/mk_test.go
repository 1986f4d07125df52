package mk

import (
	"flag"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/news/provider"
)

var update = flag.Bool("update", false, "write what is read now as the snapshots' expectation")

// Each snapshot is read as it was: a difference is a field of the publisher's
// pages, or of our parser, that changed.
func TestSnapshots(t *testing.T) {
	differences, err := provider.Verify(Provider{}, "testdata", *update)
	require.NoError(t, err)
	for name, fields := range differences {
		for _, d := range fields {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestURLPolicy(t *testing.T) {
	for address, id := range map[string]string{
		"https://www.mk.co.kr/news/economy/11012345":         "11012345",
		"https://mk.co.kr/news/stock/11012345/":              "11012345",
		"https://www.mk.co.kr/newsRead.php?year=2021&no=123": "2021-123",
		"https://www.mk.co.kr/news/economy/":                 "",
		"https://www.mk.co.kr/news/ranking/":                 "",
		"https://other.example/news/economy/11012345":        "",
	} {
		u, err := url.Parse(address)
		require.NoError(t, err)
		assert.Equal(t, id != "", Provider{}.IsArticleURL(u), address)
		if id != "" {
			assert.Equal(t, id, externalID(u), address)
		}
	}
	require.NoError(t, provider.Check([]provider.Provider{Provider{}}))
}
