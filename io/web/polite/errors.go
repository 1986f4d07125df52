package polite

import (
	"errors"
	"fmt"
	"time"

	"github.com/newsfork/seed-engine/io/web"
)

// Reasons for not sending a request that have nothing to do with its host.
var (
	ErrStopped = errors.New("the run was stopped")
	ErrBudget  = errors.New("the day's budget of requests is used up")
)

// DisallowedError says which line of robots.txt forbids a URL.
type DisallowedError struct {
	URL      string
	Line     int
	Rule     string // the line's text
	Reserved error  // of Robots.Reserves; nil: the line forbids it
}

// Unwrap returns Reserved.
func (e *DisallowedError) Unwrap() error { return e.Reserved }

func (e *DisallowedError) Error() string {
	if e.Reserved != nil {
		return e.Reserved.Error()
	}
	return fmt.Sprintf("robots.txt line %d: %s", e.Line, e.Rule)
}

// AbandonedError says that a site is sent no more requests, and why.
type AbandonedError struct {
	Site       string
	URL        string        // of the answer; empty if an earlier run got it
	Status     int           // of the answer; 0 if a Crawl-delay is the reason
	Pause      time.Duration // that the answer asks for, 0 for none
	CrawlDelay time.Duration // that robots.txt asks for, 0 if it is not the reason
	Until      time.Time     // zero: as long as this client is used
	// Hours are the only hours in which the politeness file allows requests, by its pattern
	// Pattern. "": they are not the reason. If they are, the error is also ErrStopped: it says
	// nothing about the site.
	Hours, Pattern string
}

// Is reports an error because of Hours as ErrStopped too.
func (e *AbandonedError) Is(target error) bool { return target == ErrStopped && e.Hours != "" }

func (e *AbandonedError) Error() string {
	switch {
	case e.Hours != "":
		return fmt.Sprintf("%s gets requests at %s only (%s in the politeness file): a run from %s on continues",
			e.Site, e.Hours, e.Pattern, e.Until.UTC().Format(time.RFC3339))
	case e.CrawlDelay > 0:
		return fmt.Sprintf("the robots.txt of %s asks for %v between two requests, which is more than this run waits", e.Site, e.CrawlDelay)
	case e.Pause > 0:
		return fmt.Sprintf("it answered %d for %s and asks for a pause of %v", e.Status, e.URL, e.Pause)
	case e.Status > 0:
		return fmt.Sprintf("it answered %d for %s", e.Status, e.URL)
	}
	return fmt.Sprintf("%s asked for a pause until %s", e.Site, e.Until.UTC().Format(time.RFC3339))
}

// RobotsError says that a robots.txt could not be fetched. Then every URL that it
// could forbid counts as forbidden (RFC 9309 section 2.3.1.4). It does not unwrap, so
// a *web.Error in Get's error is always the failure of the request itself.
type RobotsError struct {
	URL    string
	Status int        // of the answer, 0 if there was none
	Err    *web.Error // if there was no answer
}

func (e *RobotsError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("robots.txt cannot be fetched: %s answers with status %d", e.URL, e.Status)
	}
	return fmt.Sprintf("robots.txt cannot be fetched: %v", e.Err)
}
