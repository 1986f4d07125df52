package provider

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A front page whose articles have short numbers: those that differ in the number alone are articles, unless some have the usual form.
func TestFrontPage(t *testing.T) {
	base := &url.URL{Scheme: "https", Host: "a.example"}
	draft := func(links ...string) (string, error) {
		page := "<a href=/about/1>x</a><a href=/page/2>2</a><a href=/page/3>3</a>"
		for _, l := range links {
			page += "<a href=" + l + ">x</a>"
		}
		d := Draft{Base: base, Now: time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC), Sources: []Source{Front([]byte(page), base.JoinPath("/"))}}
		return d.Write()
	}
	var short []string
	for i := range 6 {
		short = append(short, fmt.Sprintf("/s/900%d.aspx", i), fmt.Sprintf("/page/%d", i))
	}
	text, err := draft(short...)
	require.NoError(t, err)
	assert.Contains(t, text, "homepage: true\n# 6 of 6 addresses match, such as /s/9000.aspx\narticleUrl: ")
	text, err = draft(append(short, "/a-title-of-five-long-words")...)
	require.NoError(t, err)
	assert.Contains(t, text, "such as /a-title-of-five-long-words\n")
	assert.NotContains(t, text, "aspx")
	_, err = draft(short[:4]...)
	require.ErrorIs(t, err, errNoSource)
}
