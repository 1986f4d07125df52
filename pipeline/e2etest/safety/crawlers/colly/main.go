// Command colly runs colly with the limits of its own examples (go-colly.org/docs/examples/rate_limit and random_delay) and
// robots.txt (go-colly.org/docs/introduction/configuration): its default ignores it. Its module has no storage that outlives
// a kill.
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/gocolly/colly/v2"
)

func main() {
	c := colly.NewCollector(colly.UserAgent("SafetyBot/1.0 (+https://bot.example/)"), colly.MaxDepth(4), colly.Async(true))
	c.IgnoreRobotsTxt = false
	c.WithTransport(&http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		_, port, _ := net.SplitHostPort(addr)
		return new(net.Dialer).DialContext(ctx, network, "127.0.0.1:"+port)
	}})
	reasons, err := os.OpenFile(os.Getenv("REASONS"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	reason := func(url string, why error) { _, _ = fmt.Fprintf(reasons, "%s\t%v\n", url, why) }
	seeds := strings.Fields(os.Getenv("SEEDS"))
	for _, url := range seeds { // a rule with a glob of several hosts would be one limit for all of them
		host := strings.TrimPrefix(strings.TrimSuffix(url, "/"), "http://")
		if err := c.Limit(&colly.LimitRule{DomainGlob: host, Parallelism: 1, Delay: time.Second}); err != nil {
			panic(err)
		}
	}
	c.OnHTML("a[href]", func(e *colly.HTMLElement) {
		if err := e.Request.Visit(e.Attr("href")); err != nil {
			reason(e.Request.AbsoluteURL(e.Attr("href")), err)
		}
	})
	c.OnError(func(r *colly.Response, err error) { reason(r.Request.URL.String(), err) })
	for _, url := range seeds {
		if err := c.Visit(url); err != nil {
			reason(url, err)
		}
	}
	c.Wait()
}
