package tree

import (
	"strings"
	"testing"

	"golang.org/x/net/html"
)

func BenchmarkParse(b *testing.B) {
	set := pages(b)
	for name, parse := range map[string]func(string) error{
		"tree":       func(s string) error { _, err := Parse(s); return err },
		"html.Parse": func(s string) error { _, err := html.Parse(strings.NewReader(s)); return err },
	} {
		b.Run(name, func(b *testing.B) {
			n := 0
			for b.Loop() {
				n = 0
				for _, p := range set {
					if err := parse(p); err != nil {
						b.Fatal(err)
					}
					n += len(p)
				}
			}
			b.SetBytes(int64(n))
		})
	}
}
