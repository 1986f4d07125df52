package docs

import "fmt"

// Status is where a page stands.
type Status string

// The states. A page rests in queued, retry, rate_limited and the ends; the
// others last as long as the work at hand.
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
	Skipped     Status = "skipped" // no content, not a page, login, leads elsewhere
	Indexed     Status = "indexed"
	NotModified Status = "not_modified" // 304: as indexed
	Deleted     Status = "deleted"      // 404, 410
	TooLarge    Status = "too_large"
)

// transitions are what may follow a status. A redirect's target is checked again,
// so it may be refused there; the robots.txt of an origin that is not the
// provider's own may be out of reach, which fails the page alone.
var transitions = map[Status][]Status{
	"":          {Queued},
	Queued:      {RobotsCheck},
	RobotsCheck: {Fetching, Blocked, Failed},
	Fetching:    {Parsing, Redirecting, RateLimited, Retry, Failed, NotModified, Deleted, Skipped, TooLarge},
	Redirecting: {Fetching, Failed, Blocked, Skipped},
	RateLimited: {Fetching, Failed},
	Retry:       {Fetching, Failed},
	Parsing:     {Extracting, Skipped},
	Extracting:  {Indexed, Skipped},
}

// move is the state after s, or the error that there is no such arrow.
func (s Status) move(to Status) (Status, error) {
	for _, next := range transitions[s] {
		if next == to {
			return to, nil
		}
	}
	return s, fmt.Errorf("a bug: a page cannot go from %s to %s", s, to)
}

// end says that nothing comes after s in a session.
func (s Status) end() bool { return s != "" && len(transitions[s]) == 0 }
