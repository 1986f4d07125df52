// Package samplebucket tests the numbers that testdata/README.md states, apart from the engine.
package samplebucket

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/testdata"
)

// TestReadmeNumbers compares the table in testdata/README.md with the numbers of the committed bucket.
func TestReadmeNumbers(t *testing.T) {
	text, err := os.ReadFile("../../testdata/README.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(text), "<!-- begin expected numbers -->\n")
	require.True(t, ok)
	got, _, ok := strings.Cut(rest, "<!-- end expected numbers -->\n")
	require.True(t, ok)
	objects := map[string][]byte{}
	root, err := fs.Sub(testdata.Bucket, "bucket")
	require.NoError(t, err)
	require.NoError(t, fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		objects[name], err = fs.ReadFile(root, name)
		return err
	}))
	require.Equal(t, table(objects), got)
}

func TestIdentity(t *testing.T) {
	const none = ""
	for rawURL, want := range map[string]string{
		"https://www.mom.gov.sg/newsroom":   "gov:gb:mom.gov.sg",
		"https://www.gov.uk/":               "gov:gb:www.gov.uk",
		"https://gov.sg/":                   "gov:gb:gov.sg",
		"https://www.tax.service.gov.uk/":   "gov:gb:tax.service.gov.uk",
		"https://www.bmi.bund.de/":          "other:gb:bund.de",
		"https://www.münchen.de/":           "other:gb:xn--mnchen-3ya.de",
		"HTTPS://WWW.YNA.CO.KR/":            "com:gb:yna.co.kr",
		"https://www.hani.co.kr./":          "com:gb:hani.co.kr",
		"https://192.0.2.1/":                none,
		"https://[2001:db8::1]/":            none,
		"https://intranet/":                 none,
		"https://press.moe.internal/":       none,
		"not a url":                         none,
		"https://www.redcross.sg/newsroom#": "other:gb:redcross.sg",
	} {
		got, _ := derive(rawURL, "gb")
		require.Equal(t, want, got.id, rawURL)
	}
	for _, id := range []string{"gov:SG:moh.gov.sg", "government:sg:moh.gov.sg", "gov:sg:www.moh.gov.sg", "gov:sg", "gov:sg:192.0.2.7"} {
		_, err := parseID(id)
		require.ErrorIs(t, err, errNoDomain, id)
	}
}
