package context7_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/docs/context7"
)

func TestResolve(t *testing.T) {
	for _, tt := range []struct{ name, answer, want string }{
		{"the API guide's shape", `[{"id": "/facebook/react", "name": "React", "totalSnippets": 1250}, {"id": "/demo/pay-docs", "name": "Demo  PAY", "totalSnippets": 3}]`, "/demo/pay-docs"},
		{"results", `{"results": [{"id": "/demo/pay-docs", "title": "Demo Pay"}]}`, "/demo/pay-docs"},
		{"its website", `{"results": [{"id": "/websites/docs_pay_example", "title": "Something"}]}`, "/websites/docs_pay_example"},
		{"a part of its website", `{"results": [{"id": "/websites/docs_pay_example_api", "title": "Something"}]}`, "/websites/docs_pay_example_api"},
		{"similar", `[{"id": "/other/demo-pay-clone", "name": "Demo Pay Clone"}, {"id": "/websites/docs_pay_example2", "name": "x"}]`, ""},
		{"without text", `[{"id": "/demo/pay-docs", "name": "Demo Pay", "totalSnippets": 0}]`, ""},
		{"none", `[]`, ""},
		{"no results", `{"results": []}`, ""},
	} {
		got, err := context7.Resolve([]byte(tt.answer), "Demo Pay", "docs.pay.example")
		require.NoError(t, err, tt.name)
		require.Equal(t, tt.want, got, tt.name)
	}
	for _, garbage := range []string{"", "<html>", "null", "{}", `{"results": null}`, `{"error": "too many requests"}`, `{"results": {"id": "/demo/pay-docs"}}`, `[{"id": 7}]`} {
		_, err := context7.Resolve([]byte(garbage), "Demo Pay", "docs.pay.example")
		require.ErrorContains(t, err, "reading Context7's answer", garbage)
	}
	require.Equal(t, "https://context7.com/api/v2/libs/search?libraryName=Demo+Pay&query=Demo+Pay+API+documentation", context7.Search("Demo Pay"))
}

func FuzzResolve(f *testing.F) {
	f.Add([]byte(`[{"id": "/a/b", "name": "x"}]`), "x", "a.example")
	f.Add([]byte(`{"results": [{}]}`), "", "")
	f.Fuzz(func(_ *testing.T, answer []byte, name, host string) {
		_, _ = context7.Resolve(answer, name, host) // any answer but a panic
	})
}
