package article

import (
	"fmt"
	"regexp"
	"time"

	"github.com/andybalholm/cascadia"
)

// Compiled are Rules ready for use, also by several goroutines.
type Compiled struct {
	title, body, published cascadia.Matcher
	remove                 []cascadia.Matcher
	drop                   []*regexp.Regexp
	site                   string
	zone                   *time.Location
}

// Compile checks rules and makes them ready. The error names the selector or
// expression that is malformed.
func (r Rules) Compile() (*Compiled, error) {
	c := &Compiled{site: r.Site, zone: r.Zone}
	if c.zone == nil {
		c.zone = time.UTC
	}
	for _, s := range []struct {
		name, text string
		to         *cascadia.Matcher
	}{{"title", r.Title, &c.title}, {"body", r.Body, &c.body}, {"published", r.Published, &c.published}} {
		if s.text == "" {
			continue
		}
		m, err := cascadia.ParseGroup(s.text)
		if err != nil {
			return nil, fmt.Errorf("reading the %s selector %q: %w", s.name, s.text, err)
		}
		*s.to = m
	}
	for _, s := range r.Remove {
		m, err := cascadia.ParseGroup(s)
		if err != nil {
			return nil, fmt.Errorf("reading the remove selector %q: %w", s, err)
		}
		c.remove = append(c.remove, m)
	}
	for _, s := range r.Drop {
		m, err := regexp.Compile(s)
		if err != nil {
			return nil, fmt.Errorf("reading the drop expression: %w", err)
		}
		c.drop = append(c.drop, m)
	}
	return c, nil
}

// MustCompile is Compile for rules that are part of a program.
func MustCompile(r Rules) *Compiled {
	c, err := r.Compile()
	if err != nil {
		panic(err) // a mistake in the source, which any test finds
	}
	return c
}
