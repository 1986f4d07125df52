package content

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is written without the library is what the library writes.
func FuzzText(f *testing.F) {
	for _, s := range []string{"", " ", "a", "a b", " a", "a ", "a  b", "a\tb", "\"\\", "<&>", "\x7f", "한글\u2028\u00a0x", "\xff", "a\x1fb"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var want strings.Builder
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		err := e.Encode(s)
		if got := appendString(nil, s); err != nil || string(got)+"\n" != want.String() {
			t.Errorf("%q is written %s, want %s (%v)", s, got, want.String(), err)
		}
		if got, want := oneLine(s), strings.Join(strings.Fields(s), " "); got != want {
			t.Errorf("%q in one line is %q, want %q", s, got, want)
		}
	})
}

func TestAppendJSON(t *testing.T) {
	const text = `{"z":[],"a":{},"a":[1.50,-0,1e9,"x",true,false,null,{"<":"\u00e9"}]}`
	v, err := readObject(text)
	require.NoError(t, err)
	const want = `{"z":[],"a":{},"a":[1.50,-0,1e9,"x",true,false,null,{"<":"é"}]}`
	require.Equal(t, want, string(appendJSON(nil, v)))
}
