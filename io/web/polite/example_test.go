package polite_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/transforms/parse/article"
)

// A crawler that obeys robots.txt, pauses between two requests to a site, waits when a
// site asks for it, and retries what may pass.
func Example() {
	cfg, stop := aSite() // in a program of your own: cfg := web.Config{UserAgent: "YourBot/1.0 (+https://you.example/bot)"}
	defer stop()
	client, err := web.New(cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	visit := polite.Client{Web: client, Pacer: &polite.Pacer{}, Policy: polite.Policy{
		Gap:    polite.Range{Min: 100 * time.Millisecond},
		Robots: polite.Robots{Agent: "YourBot", OnFailure: polite.Standard},
		Retry:  func(a polite.Attempt) (time.Duration, bool) { return time.Second, a.Status() >= 500 && a.Retries < 2 },
	}}
	defer visit.Close()
	for _, url := range []string{"https://paper.example.com/news/1", "https://paper.example.com/private/2"} {
		page, err := visit.Get(context.Background(), polite.Request{URL: url, Timeout: 10 * time.Second, MaxBytes: 5 << 20, MaxRedirects: 5})
		var disallowed *polite.DisallowedError
		if errors.As(err, &disallowed) {
			fmt.Println(url, "is disallowed")
			continue
		}
		if err != nil {
			log.Fatal(err)
		}
		read, err := article.Extract(page.Body, page.Header.Get("Content-Type"), article.Rules{})
		fmt.Println(page.Status, read.Title, err)
	}
	// Output:
	// 200 Rain at last <nil>
	// https://paper.example.com/private/2 is disallowed
}

// aSite starts a simulated web with one site, and returns how a client gets there.
func aSite() (cfg web.Config, stop func()) {
	sim := webtest.New(webtest.Options{})
	sim.Handle("paper.example.com", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			fmt.Fprint(w, "User-agent: *\nDisallow: /private/\n")
			return
		}
		fmt.Fprint(w, "<html><head><title>Rain at last</title></head><body><p>It rained.</p></body></html>")
	}))
	if err := sim.Start(); err != nil {
		log.Fatal(err)
	}
	return web.Config{ConnectTo: sim.Addr(), RootCAs: sim.CAPEM()}, func() {
		if err := sim.Close(); err != nil {
			log.Fatal(err)
		}
	}
}
