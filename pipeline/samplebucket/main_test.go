package main

import (
	"io/fs"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBucketIsGenerated compares the committed bucket with the generator, byte for byte and both ways.
func TestBucketIsGenerated(t *testing.T) {
	root := os.DirFS("../../testdata/bucket")
	found := map[string]string{}
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := fs.ReadFile(root, name)
		found[name] = string(body)
		return err
	})
	require.NoError(t, err)
	want := map[string]string{}
	for key, body := range bucket() {
		want[key] = string(body)
	}
	require.Equal(t, want, found, "run: go run ./pipeline/samplebucket")
}

// TestReadmeNumbers compares the README's table with the bucket.
func TestReadmeNumbers(t *testing.T) {
	text, err := os.ReadFile("../../testdata/README.md")
	require.NoError(t, err)
	want, err := splice(string(text), table(bucket()))
	require.NoError(t, err)
	require.Equal(t, want, string(text), "run: go run ./pipeline/samplebucket")
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
