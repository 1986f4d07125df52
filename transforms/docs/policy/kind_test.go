package policy_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/docs/policy"
	"github.com/newsfork/seed-engine/transforms/parse/policyfile"
)

var kind = policy.Kind(nil)

// What people keep in the store wins over shipped files, and files that the user names
// win over both. What people disabled is off in any case.
func TestProviders(t *testing.T) {
	file := func(id, more string) policy.Policy {
		p, err := policy.Parse(id, []byte("provider_id: "+id+"\nseed_urls: [https://"+id+".example/docs]\nallowed_path_patterns: [/docs/**]\n"+more), today)
		require.NoError(t, err)
		return p
	}
	text := func(id, more string) string {
		return `{"provider_id": "` + id + `", "seed_urls": ["https://` + id + `.example/docs"], "allowed_path_patterns": ["/docs/**"]` + more + `}`
	}
	files := []policy.Policy{file("a", ""), file("b", ""), file("c", ""), file("d", "")}
	changes := map[string]policyfile.Change{
		"a": {Text: text("a", `, "max_pages": 7`)},
		"b": {Disabled: true, Why: "they asked us to"},
		"d": {}, // removed again
		"e": {Text: text("e", "")},
		"f": {}, // was only in the store
		"g": {Text: text("g", `, "max_page": 7`)},
		"h": {Text: text("e", "")},
		"i": {Text: text("i", ""), Disabled: true},
		"j": {Disabled: true},
		"k": {Text: "provider_id: k\nname: \"A\\aB\"\nmax_pages: 0\n" + "seed_urls: [https://k.example/docs]\nallowed_path_patterns: [/docs/**]\ntos_checked: 2062-03-01\n"},
	}
	show := func(all []policyfile.Joined[policy.Policy]) (out [][]any) {
		for _, p := range all {
			out = append(out, []any{p.ID, p.Origin, p.Value.MaxPages, p.Off})
		}
		return out
	}
	const refused = " So its policy in the store is refused; correct or remove it on the provider's page or by the API (/api/v1/docs/providers/"
	assert.Equal(t, [][]any{
		{"a", policyfile.StoreOverFile, 7, ""},
		{"b", policyfile.File, 200, "it was disabled: they asked us to"},
		{"c", policyfile.File, 200, ""},
		{"d", policyfile.File, 200, ""},
		{"e", policyfile.Store, 200, ""},
		{"g", policyfile.Store, 0, `policy: line 1: unknown field "max_page".` + refused + "g)"},
		{"h", policyfile.Store, 0, "provider_id: it names e." + refused + "h)"},
		{"i", policyfile.Store, 200, "it was disabled: no reason was given"},
		{"k", policyfile.Store, 0, `policy:3: max_pages: 0 is outside 1 to 500; policy:2: name: "A\aB" has line breaks or control characters; write one line; policy:6: tos_checked: 2062-03-01 is in the future; write the day on which the terms were read.` + refused + "k)"},
	}, show(kind.Join(files, changes, false, today)))
	assert.Equal(t, [][]any{
		{"a", policyfile.File, 200, ""},
		{"b", policyfile.File, 200, "it was disabled: they asked us to"},
		{"c", policyfile.File, 200, ""},
		{"d", policyfile.File, 200, ""},
	}, show(kind.Join(files, changes, true, today)))
}

// A policy as JSON means the same as text.
func FuzzYAML(f *testing.F) {
	f.Add([]byte(`{"provider_id":"a","seed_urls":["https://a.example/docs"],"allowed_path_patterns":["/{a,b}/**"],"max_pages":50,"name":"yes","custom_selectors":{"remove":[".a"]},"sitemap_url":null}`))
	f.Add([]byte(`{"provider_id":"a","seed_urls":["https://a.example/docs"],"allowed_path_patterns":["/**"],"max_depth":2.5,"name":"\u0085 \ud83d\ude00 # no: comment\n---\n"}`))
	f.Add([]byte(`{"provider_id":"a","seed_urls":["https://a.example/docs"],"allowed_path_patterns":["/\u0001\udbff\udfff/**"],"name":"\ue000 \udbff\udfff"}`))
	f.Add([]byte(`{"provider_id":"007","seed_urls":["https://a.example/"],"allowed_path_patterns":["**"],"category":"1e3","keep_query_params":["~","null"]}`))
	f.Add([]byte(`{"provider_id":"a","seed_urls":["https://a.example/"],"allowed_path_patterns":["**"],"name":"a\tb"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		out, err := kind.Text(text)
		if err != nil {
			return
		}
		p, err := policy.Parse("f", []byte(out), today)
		if err != nil {
			return
		}
		var want struct{ Name, Category *string }
		if json.Unmarshal(text, &want) == nil && want.Name != nil && p.Name != *want.Name {
			t.Errorf("%q became the name %q of %q", text, p.Name, out)
		}
		b, err := p.JSON()
		require.NoError(t, err)
		again, err := kind.Text(b)
		require.NoError(t, err, string(b))
		back, err := policy.Parse("f", []byte(again), today)
		require.NoError(t, err, "%s\n%s", b, again)
		if bb, err := back.JSON(); err != nil || string(bb) != string(b) {
			t.Errorf("%s became %s (%v)", b, bb, err)
		}
	})
}
