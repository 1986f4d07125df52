//go:build e2e

package rig

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Page is the blocks of docs/cluster.md that one test runs, by name.
type Page map[string]string

// ReadPage reads the blocks that the page marks as run by the test. Every block of
// commands on the page must be marked as run by a test, or say why it is not run.
func ReadPage(test string) (Page, error) {
	source, err := filepath.Abs("../../..")
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(source, "docs", "cluster.md"))
	if err != nil {
		return nil, err
	}
	page, mark, name := Page{}, "", ""
	open := false
	for i, line := range strings.Split(string(text), "\n") {
		switch {
		case open && line == "```":
			open = false
		case open:
			page[name] += line + "\n"
		case strings.HasPrefix(line, "```"):
			run, isRun := strings.CutPrefix(mark, "<!-- run by ")
			if !isRun && !strings.HasPrefix(mark, "<!-- not run") {
				return nil, fmt.Errorf("docs/cluster.md:%d: say above the block which test runs it, or why none does", i+1)
			}
			by, what, _ := strings.Cut(strings.TrimSuffix(run, " -->"), ": ")
			if open, name = true, what; by != test {
				name = "" // of another test, or of none
			}
		case line != "":
			mark = line
		}
	}
	delete(page, "")
	return page, nil
}

// Jars runs the page's block that downloads what the cluster needs, in a folder that
// Main removes, and returns the folder.
func (p Page) Jars() (string, error) {
	if _, err := exec.LookPath("java"); err != nil {
		return "", fmt.Errorf("a cluster needs Java 17: %w", err)
	}
	source, err := filepath.Abs("../../..")
	if err != nil {
		return "", err
	}
	var out []byte
	for range 2 { // a download may fail once
		cmd := exec.Command("bash", "-euc", p["jars"])
		cmd.Dir, cmd.Env = Scratch, append(os.Environ(), "SOURCE="+source)
		if out, err = cmd.CombinedOutput(); err == nil {
			return Scratch, nil
		}
	}
	return "", errors.Join(fmt.Errorf("downloading what the cluster needs: %w", err), errors.New(Tail(string(out))))
}

// Start runs a block of the page in a folder, with other addresses than the page's.
func (p Page) Start(t testing.TB, block, dir string, addresses *strings.Replacer, env ...string) *Child {
	t.Helper()
	if p[block] == "" {
		t.Fatalf("docs/cluster.md has no block %q for this test", block)
	}
	cmd := exec.Command("bash", "-euc", addresses.Replace(p[block]))
	cmd.Dir, cmd.Env = dir, env
	return Start(t, cmd)
}

// Submit runs the page's command for a job as it is there: what only a test needs
// comes from a script in the program's place.
func (p Page) Submit(t testing.TB, w Web, store string, addresses *strings.Replacer, more ...string) *Child {
	t.Helper()
	bin := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nexec %s \"$@\" %s\n", Program, strings.Join(append(w.Args(store, "--shared-filesystem"), more...), " "))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "pipeline"), []byte(script), 0o700))
	return p.Start(t, "submit", bin, addresses, append(os.Environ(), "SSL_CERT_FILE="+w.CA, "STORE="+store, "PATH="+bin+":"+os.Getenv("PATH"))...)
}
