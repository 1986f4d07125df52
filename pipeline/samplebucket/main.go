// Command samplebucket writes the sample bucket and the table of expected numbers in
// testdata/README.md. The same source gives the same bytes.
//
//	go run ./pipeline/samplebucket
//
// Run it from the module's root.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	begin = "<!-- begin expected numbers: written by go run ./pipeline/samplebucket -->\n"
	end   = "<!-- end expected numbers -->\n"
)

func main() {
	dir := flag.String("dir", "testdata", "the folder with bucket/ and README.md")
	flag.Parse()
	if err := run(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "samplebucket:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	objects := bucket()
	root := filepath.Join(dir, "bucket")
	if err := os.RemoveAll(root); err != nil {
		return fmt.Errorf("removing the old bucket: %w", err)
	}
	for key, body := range objects {
		name := filepath.Join(root, filepath.FromSlash(key))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return fmt.Errorf("making a partition: %w", err)
		}
		if err := os.WriteFile(name, body, 0o644); err != nil {
			return fmt.Errorf("writing an object: %w", err)
		}
	}
	readme := filepath.Join(dir, "README.md")
	text, err := os.ReadFile(readme)
	if err != nil {
		return fmt.Errorf("reading the README (run this from the module's root): %w", err)
	}
	updated, err := splice(string(text), table(objects))
	if err != nil {
		return err
	}
	if err := os.WriteFile(readme, []byte(updated), 0o644); err != nil {
		return fmt.Errorf("writing the README: %w", err)
	}
	return nil
}

// splice puts numbers between the two marks of the README.
func splice(readme, numbers string) (string, error) {
	before, rest, ok := strings.Cut(readme, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", fmt.Errorf("README.md lacks its marks; put %q and %q back", begin, end)
	}
	return before + begin + numbers + end + after, nil
}
