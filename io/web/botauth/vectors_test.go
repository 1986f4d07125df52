package botauth

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// vector is a case of testdata/vectors.json: a message, what Signature-Input says of it, and what the specification prints.
type vector struct {
	From, Method, URL  string
	Header             map[string]string
	Body               string // of a directory
	Label, Input       string
	Base               []string
	ContentDigest, Sig string
}

// The signature bases and signatures of RFC 9421 (B.2.6) and of the draft are those that the specifications print.
func TestVectors(t *testing.T) {
	pem, err := os.ReadFile("testdata/rfc9421-b.1.4.pem")
	require.NoError(t, err)
	keys, err := parseKeys(pem)
	require.NoError(t, err)
	assert.Equal(t, "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U", keys[0].ID, "RFC 8037, appendix A.3")
	assert.Equal(t, "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs", x(keys[0].public()))
	text, err := os.ReadFile("testdata/vectors.json")
	require.NoError(t, err)
	var all []vector
	require.NoError(t, json.Unmarshal(text, &all))
	require.Len(t, all, 4)
	for _, v := range all {
		t.Run(v.From, func(t *testing.T) {
			u, err := url.Parse(v.URL)
			require.NoError(t, err)
			r := &http.Request{Method: v.Method, URL: u, Host: u.Host, Header: http.Header{}}
			for name, value := range v.Header {
				r.Header.Set(name, value)
			}
			d, err := httpsfv.UnmarshalDictionary([]string{v.Label + "=" + v.Input})
			require.NoError(t, err)
			m, _ := d.Get(v.Label)
			covered, value := m.(httpsfv.InnerList), requestValue(r)
			if v.Body != "" {
				value, err = answerValue(r.Header, []byte(v.Body), u.Host)
				require.NoError(t, err)
				assert.Equal(t, v.ContentDigest, r.Header.Get("Content-Digest"))
			}
			got, params, err := base(covered, value)
			require.NoError(t, err)
			assert.Equal(t, strings.Join(v.Base, "\n"), got)
			assert.Equal(t, v.Input, params)
			require.NoError(t, keys[0].sign(r.Header, v.Label, covered, value))
			assert.Equal(t, v.Label+"="+v.Sig, r.Header.Get("Signature"))
		})
	}
}
