package docs

import (
	"strings"
	"testing"
)

func TestPageFile(t *testing.T) {
	for address, want := range map[string]string{
		"https://docs.example/":                            "docs.example/index.md",
		"https://docs.example/a/b.html":                    "docs.example/a/b.html.md",
		"https://docs.example/a/":                          "docs.example/a.md",
		"https://docs.example:8080/a":                      "docs.example_8080/a.md",
		"https://docs.example/a.md":                        "docs.example/a-md-",
		"https://docs.example/a.md/b":                      "docs.example/a-md/b-",
		"https://docs.example/a?page=2":                    "docs.example/a-",
		"https://docs.example/../../etc":                   "docs.example/--/--/etc-",
		"https://docs.example/a/%2e%2e/b":                  "docs.example/a/%2e%2e/b.md",
		"https://docs.example/.ssh/x":                      "docs.example/-ssh/x-",
		"https://docs.example/a:b\\c":                      "docs.example/a-b%5Cc-",
		"https://docs.example/" + strings.Repeat("x", 200): "docs.example/" + strings.Repeat("x", 80) + "-",
	} {
		got, err := pageFile(address)
		if err != nil || got != want && (!strings.HasSuffix(want, "-") || !strings.HasPrefix(got, want) || len(got) != len(want)+len("0123abcd.md")) {
			t.Errorf("pageFile(%s) = %s, %v; want %s", address, got, err, want)
		}
	}
}

// A page's file is inside of its folder, whatever its address is.
func FuzzPageFile(f *testing.F) {
	f.Add("https://a.example/../..//b?c")
	f.Fuzz(func(t *testing.T, address string) {
		name, err := pageFile(address)
		if err == nil && (strings.HasPrefix(name, "/") || strings.HasPrefix(name, "../") || strings.Contains(name, "/../") || strings.ContainsRune(name, 0)) {
			t.Errorf("%q has the file %q", address, name)
		}
	})
}
