package hankyung

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
		"https://www.hankyung.com/article/2024050312341":         "2024050312341",
		"https://www.hankyung.com/article/202405031234i":         "202405031234i",
		"https://www.hankyung.com/economy/article/2024050312341": "2024050312341",
		"https://www.hankyung.com/economy":                       "",
		"https://www.hankyung.com/article/":                      "",
		"https://other.example/article/2024050312341":            "",
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
