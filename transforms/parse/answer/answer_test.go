package answer_test

import (
	"testing"

	"github.com/newsfork/seed-engine/transforms/parse/answer"
	"github.com/newsfork/seed-engine/transforms/parse/cases"
)

func TestClassify(t *testing.T) {
	html := map[string][]string{"Content-Type": {"text/html; charset=utf-8"}}
	plain := map[string][]string{"Content-Type": {"text/plain"}}
	for name, tt := range map[string]struct {
		r    answer.Response
		want answer.Verdict
	}{
		"rules":                       {answer.Response{Status: 200, Header: plain, Body: []byte("User-agent: *\nDisallow:\n"), Want: answer.Robots}, answer.Verdict{Kind: answer.Robots}},
		"rules under the wrong type":  {answer.Response{Status: 200, Header: html, Body: []byte("User-agent: *\nDisallow: /a\n"), Want: answer.Robots}, answer.Verdict{Kind: answer.Robots}},
		"a page in place of rules":    {answer.Response{Status: 200, Header: html, Body: []byte("<html><title>Shop</title><h1>Welcome to the shop</h1>"), Want: answer.Robots}, answer.Verdict{Kind: answer.OtherType, Evidence: "page in place of robots"}},
		"a sitemap":                   {answer.Response{Status: 200, Header: html, Body: []byte(`<?xml version="1.0"?><sm:urlset xmlns:sm="x"></sm:urlset>`), Want: answer.Sitemap}, answer.Verdict{Kind: answer.Sitemap}},
		"a feed for a sitemap":        {answer.Response{Status: 200, Body: []byte(`<rss version="2.0"><channel/></rss>`), Want: answer.Sitemap}, answer.Verdict{Kind: answer.Sitemap}},
		"a sitemap for a feed":        {answer.Response{Status: 200, Body: []byte(`<urlset></urlset>`), Want: answer.Feed}, answer.Verdict{Kind: answer.OtherType, Evidence: "sitemap in place of feed"}},
		"a list of URLs":              {answer.Response{Status: 200, Header: plain, Body: []byte("\nhttps://example.com/a\n"), Want: answer.Sitemap}, answer.Verdict{Kind: answer.Sitemap}},
		"JSON":                        {answer.Response{Status: 200, Body: []byte(`{"a": 1}`)}, answer.Verdict{Kind: answer.JSON}},
		"a PDF":                       {answer.Response{Status: 200, Header: html, Body: []byte("%PDF-1.7\n…"), Want: answer.PDF}, answer.Verdict{Kind: answer.PDF}},
		"a picture":                   {answer.Response{Status: 200, Header: html, Body: []byte("\x89PNG\r\n\x1a\n\x00")}, answer.Verdict{Kind: answer.OtherType, Evidence: "image/png"}},
		"no body":                     {answer.Response{Status: 200, Header: html, Body: []byte(" \n")}, answer.Verdict{Kind: answer.Empty, Evidence: "no body"}},
		"Markdown":                    {answer.Response{Status: 200, Header: map[string][]string{"Content-Type": {"text/markdown"}}, Body: []byte("# Guide\n\nDo this.\n")}, answer.Verdict{Kind: answer.Text}},
		"a status":                    {answer.Response{Status: 500, Header: html, Body: []byte("<h1>Hm</h1>")}, answer.Verdict{Kind: answer.ErrorPage, Evidence: "status 500"}},
		"a challenge by its header":   {answer.Response{Status: 403, Header: map[string][]string{"Cf-Mitigated": {"challenge"}}}, answer.Verdict{Kind: answer.Challenge, Vendor: "Cloudflare", Evidence: "header cf-mitigated: challenge"}},
		"a challenge for a sitemap":   {answer.Response{Status: 200, Header: html, Body: []byte("<!DOCTYPE html><html><title>Just a moment...</title></html>"), Want: answer.Sitemap}, answer.Verdict{Kind: answer.Challenge, Vendor: "Cloudflare", Evidence: `title "Just a moment..."`}},
		"a soft 404":                  {answer.Response{Status: 200, Header: html, Body: []byte("<title>Page not found | Docs</title><h1>Sorry</h1><p>Try the search.</p>"), Want: answer.Page}, answer.Verdict{Kind: answer.Soft404, Evidence: `title "Page not found | Docs"`}},
		"a section of a page":         {answer.Response{Status: 200, Header: html, Body: []byte("<title>Errors | Docs</title><main><h1>Errors</h1><h2>404 Not Found</h2><p>There is no such invoice.</p><h2>409 Conflict</h2><p>It was paid before.</p><h2>500 Internal server error</h2><p>Try it again later, and write to us if it lasts. Each answer names the request, which helps us to find out what happened. Errors of the network have no status: repeat them with longer and longer waits.</p></main>")}, answer.Verdict{Kind: answer.Page}},
		"statuses of one call":        {answer.Response{Status: 200, Header: html, Body: []byte("<title>Get an invoice | Docs</title><main><h1>Get an invoice</h1><p>Returns one invoice. 200: OK. 404: Not found.</p></main>")}, answer.Verdict{Kind: answer.Page}},
		"evidence of a hostile title": {answer.Response{Status: 200, Header: html, Body: []byte("<title>\u202e404\x01\u202c</title>"), Want: answer.Page}, answer.Verdict{Kind: answer.Soft404, Evidence: `title "404"`}},
	} {
		t.Run(name, func(t *testing.T) {
			if v := answer.Classify(tt.r); v != tt.want {
				t.Errorf("got %+v\nwant %+v", v, tt.want)
			}
		})
	}
}

func TestLogin(t *testing.T) {
	for page, want := range cases.Table[map[string]bool](t, "logins.yaml") {
		if v := answer.Classify(answer.Response{Status: 200, Body: []byte(page)}); want != (v.Kind == answer.Login) {
			t.Errorf("%s is called %+v", page, v)
		}
	}
}
