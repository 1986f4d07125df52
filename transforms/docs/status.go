package docs

import "fmt"

// Status is the state of a page.
type Status string

// The states of a page. It can stay in queued, retry, rate_limited and the final
// states; it passes through the others while it is worked on.
const (
	Queued      Status = "queued"
	RobotsCheck Status = "robots_check"
	Fetching    Status = "fetching"
	Redirecting Status = "redirecting"
	RateLimited Status = "rate_limited" // waits for its Retry-After
	Retry       Status = "retry"        // waits for its backoff
	Parsing     Status = "parsing"
	Extracting  Status = "extracting"

	Blocked     Status = "blocked" // robots.txt
	Failed      Status = "failed"  // 403, other errors, retries and redirects used up
	Skipped     Status = "skipped" // no content, not a page, login, redirects or is a copy
	Indexed     Status = "indexed"
	NotModified Status = "not_modified" // 304: as indexed
	Deleted     Status = "deleted"      // 404, 410
	TooLarge    Status = "too_large"
)

// transitions has the states that may follow each state. The target of a redirect is
// checked too, so it may be refused. The robots.txt of an origin that is not the
// provider's own may be unreachable, which fails only the page. What was read may be a
// notice in place of the page.
var transitions = map[Status][]Status{
	"":          {Queued},
	Queued:      {RobotsCheck},
	RobotsCheck: {Fetching, Blocked, Failed},
	Fetching:    {Parsing, Redirecting, RateLimited, Retry, Failed, NotModified, Deleted, Skipped, TooLarge},
	Redirecting: {Fetching, Failed, Blocked, Skipped},
	RateLimited: {Fetching, Failed},
	Retry:       {Fetching, Failed},
	Parsing:     {Extracting, Skipped, Failed},
	Extracting:  {Indexed, Skipped},
}

// move returns the state to, or an error if it may not follow s.
func (s Status) move(to Status) (Status, error) {
	for _, next := range transitions[s] {
		if next == to {
			return to, nil
		}
	}
	return s, fmt.Errorf("a bug: a page cannot go from %s to %s", s, to)
}

// end reports whether s is a final state of a page in a session.
func (s Status) end() bool { return s != "" && len(transitions[s]) == 0 }
