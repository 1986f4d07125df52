package printable

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var cases = map[string]string{
	"plain text, 한국어 日本語　«ça»": "plain text, 한국어 日本語　«ça»",
	"\x1b[31mred\x07":               `\u001b[31mred\u0007`,
	"user\u202egnp.exe":             `user\u202egnp.exe`,
	"\u2066a\u2069\u200e":           `\u2066a\u2069\u200e`,
	"\u009b2J":                      `\u009b2J`,
	"\x9b2J":                        `\x9b2J`,
	"tag \U000e0041":                `tag \udb40\udc41`,
	"replaced \ufffd":               "replaced \ufffd",
	"del\x7f, soft\u00ad, null\x00": `del\u007f, soft\u00ad, null\u0000`,
}

func TestLine(t *testing.T) {
	for in, want := range cases {
		assert.Equal(t, want, Line(in), "Line(%q)", in)
	}
	assert.Equal(t, `a\u0009b\u000d\u000ac`, Line("a\tb\r\nc"), "one line")
}

// TestWriter writes each text byte by byte too: a character may come in parts.
func TestWriter(t *testing.T) {
	for in, want := range cases {
		var whole, parts bytes.Buffer
		n, err := Writer(&whole).Write([]byte(in))
		assert.True(t, n == len(in) && err == nil, "%q: wrote %d, %v", in, n, err)
		w := Writer(&parts)
		for i := range len(in) {
			_, err := w.Write([]byte(in[i : i+1]))
			assert.NoError(t, err)
		}
		assert.True(t, whole.String() == want && parts.String() == want,
			"%q: wrote %q and in parts %q, want %q", in, whole.String(), parts.String(), want)
	}
}

// TestWriterKeepsJSON reads back what was written.
func TestWriterKeepsJSON(t *testing.T) {
	said := "a\u009b \u202e \U000e0041 \x1b \u2028 \"\\ end"
	var b bytes.Buffer
	require.NoError(t, json.NewEncoder(Writer(&b)).Encode(said))
	for _, r := range b.String() {
		assert.True(t, r == '\n' || unicode.IsGraphic(r), "%q holds %q", b.String(), r)
	}
	var got string
	err := json.Unmarshal(b.Bytes(), &got)
	assert.True(t, err == nil && got == said, "read %q (%v), want %q", got, err, said)
}
