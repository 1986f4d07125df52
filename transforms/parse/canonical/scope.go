package canonical

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"
)

// Scope says by path which pages of a host a crawl visits, with glob patterns
// of minimatch's meaning (**, *, ?, {a,b}, [..]; wildcards pass over names that
// begin with a dot) except that X/** also matches X itself. A pattern that begins with
// re: is a regular expression of RE2's syntax, which may match anywhere in the path. A path that matches a
// pattern of Block is out of scope, whatever Allow says; so is a path that matches
// no pattern.
type Scope struct {
	Allow []string `json:"allow"`
	Block []string `json:"block,omitempty"`
}

// In reports whether a path (Path of a key) is in scope.
func (s Scope) In(path string) bool {
	_, in := s.Rule(path)
	return in
}

// Rule is In with the pattern that decided, "" where no pattern matched.
func (s Scope) Rule(path string) (pattern string, in bool) {
	for _, p := range s.Block {
		if Match(p, path) {
			return p, false
		}
	}
	for _, p := range s.Allow {
		if Match(p, path) {
			return p, true
		}
	}
	return "", false
}

// Check says which pattern can never match: a malformed one, one that does not
// begin with a slash or a wildcard, or one with minimatch's features that are
// not supported (negation, comments, extended globs, ranges in braces).
func (s Scope) Check() error {
	for _, list := range [][]string{s.Allow, s.Block} {
		for _, p := range list {
			if err := check(p); err != nil {
				return fmt.Errorf("path pattern %q %w", p, err)
			}
		}
	}
	return nil
}

// expression is what a pattern begins with that is a regular expression.
const expression = "re:"

// maxExpression is the maximum length of a regular expression.
const maxExpression = 1000

// expressions are the compiled regular expressions, by pattern. There are as many as policies have.
var expressions sync.Map // *regexp.Regexp

func compiled(pattern string) (*regexp.Regexp, error) {
	if re, ok := expressions.Load(pattern); ok {
		return re.(*regexp.Regexp), nil
	}
	text := strings.TrimPrefix(pattern, expression)
	if len(text) > maxExpression {
		return nil, fmt.Errorf("is longer than %d characters", maxExpression)
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("is no regular expression of RE2's syntax: %w", err)
	}
	expressions.Store(pattern, re)
	return re, nil
}

func check(pattern string) error {
	if strings.HasPrefix(pattern, expression) {
		re, err := compiled(pattern)
		if err == nil && re.String() == "" {
			err = fmt.Errorf("is an empty regular expression: write /** for every path")
		}
		return err
	}
	switch {
	case pattern == "":
		return fmt.Errorf("is empty: write /** for every path")
	case !strings.ContainsRune("/*?[{", rune(pattern[0])):
		return fmt.Errorf("does not begin with a slash: it would match no path")
	case !doublestar.ValidatePattern(pattern):
		return fmt.Errorf("is malformed: a bracket or brace is not closed, or a back-slash ends it")
	case strings.Contains(pattern, ".."):
		return fmt.Errorf("has two dots: name the alternatives of a range one by one, {1,2,3}")
	}
	for _, mark := range []string{"?(", "*(", "+(", "@(", "!("} {
		if strings.Contains(pattern, mark) {
			return fmt.Errorf("uses %s…): write {a,b} for alternatives", mark)
		}
	}
	return nil
}

// Match reports whether one pattern matches a path; a malformed one matches
// nothing. Escapes in the pattern are read as in keys.
func Match(pattern, path string) bool {
	if strings.HasPrefix(pattern, expression) {
		re, err := compiled(pattern)
		return err == nil && re.MatchString(path)
	}
	if strings.IndexByte(pattern, '%') >= 0 {
		pattern = decode(pattern)
	}
	if ok, err := doublestar.Match(pattern, path); err != nil || !ok {
		return false
	}
	if !strings.Contains(path, "/.") {
		return true
	}
	// minimatch without its option dot: a name that begins with a dot is matched
	// only by a part of the pattern that begins with one.
	parts := strings.FieldsFunc(pattern, func(r rune) bool { return strings.ContainsRune("/{,}", r) })
	for name := range strings.SplitSeq(path, "/") {
		if !strings.HasPrefix(name, ".") {
			continue
		}
		found := false
		for _, part := range parts {
			if strings.HasPrefix(part, ".") {
				ok, err := doublestar.Match(part, name)
				found = found || ok && err == nil
			}
		}
		if !found {
			return false
		}
	}
	return true
}
