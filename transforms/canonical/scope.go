package canonical

// Scope says by path which pages of a host a crawl visits, with glob patterns
// of minimatch's meaning (**, *, ?, {a,b}, [..]) except that X/** also matches X
// itself. A path that a pattern of Block matches is out, whatever Allow says; a
// path that no pattern matches is out (CPA-001 section 4.1).
type Scope struct {
	Allow []string `json:"allow"`
	Block []string `json:"block,omitempty"`
}

// In reports whether a path (of a key, from its first slash on, without query)
// is in scope.
func (s Scope) In(path string) bool {
	_, in := s.Rule(path)
	return in
}

// Rule is In with the pattern that decided, "" where no pattern matched.
func (s Scope) Rule(path string) (pattern string, in bool) { return "", false }

// Check says which pattern of the scope is malformed, nil where none is.
func (s Scope) Check() error { return nil }

// Path is the part of a key that scopes match: from the first slash after the
// host up to the query.
func Path(key string) string { return "" }
