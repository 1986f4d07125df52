package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// standard is Go's standard library among the modules.
const standard = "std"

// module is one that the released programs link.
type module struct {
	Path, Version, Dir string
	texts              []licence
}

// licence is a file of a module that says under which terms it may be used.
type licence struct {
	id   string // SPDX; empty for a file with notices and no terms
	text string
}

// linked lists the modules of the released programs: those built for Linux, without
// cgo. The first is the standard library. It has no version here, so that NOTICE
// does not change with Go's releases. The modules must be on this machine
// (go mod download).
func linked(dir string) ([]module, error) {
	list := exec.Command("go", "list", "-tags=disable_grpc_modules", "-deps", "-json=Module", "./cmd/...") // as in .goreleaser.yaml
	list.Dir = dir
	list.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the linked modules: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("looking for Go's own licence: %w", err)
	}
	std := module{Path: standard, Dir: strings.TrimSpace(string(goroot))}
	var found []module
	for packages := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ Module *module }
		switch err := packages.Decode(&p); {
		case errors.Is(err, io.EOF):
			slices.SortFunc(found, func(a, b module) int { return strings.Compare(a.Path, b.Path) })
			return slices.CompactFunc(append([]module{std}, found...), func(a, b module) bool { return a.Path == b.Path }), nil
		case err != nil:
			return nil, fmt.Errorf("reading the linked modules: %w", err)
		}
		if p.Module != nil && p.Module.Version != "" { // the standard library has no module, ours no version
			found = append(found, *p.Module)
		}
	}
}

var licenceFile = regexp.MustCompile(`(?i)^([a-z0-9]+-)?(licen[cs]e|copying|notice|copyright|patents)([-._].*)?$`)

// readLicences reads the licence files in a module's top folder. A module without
// one, or with a licence outside allowedLicences, is an error.
func (m *module) readLicences(identify func([]byte) []string) error {
	files, err := os.ReadDir(m.Dir)
	if err != nil {
		return fmt.Errorf("reading the licence of %s: %w", m.Path, err)
	}
	known := false
	for _, f := range files {
		// The licence of a module's documents is not that of its code.
		if f.IsDir() || !licenceFile.MatchString(f.Name()) || slices.Contains([]string{".go", ".docs"}, filepath.Ext(f.Name())) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.Dir, f.Name()))
		if err != nil {
			return fmt.Errorf("reading the licence of %s: %w", m.Path, err)
		}
		ids := identify(text)
		for _, id := range ids {
			if !slices.Contains(allowedLicences, id) {
				return fmt.Errorf("%s %s: %s is under %s, which is not among the allowed licences (%s): drop the module, or allow it in deploy/notice/licences.go", m.Path, m.Version, f.Name(), id, strings.Join(allowedLicences, ", "))
			}
		}
		known = known || len(ids) > 0
		m.texts = append(m.texts, licence{strings.Join(ids, " and "), strings.ReplaceAll(string(text), "\r\n", "\n")})
	}
	if !known {
		return fmt.Errorf("%s %s: none of its files has a known licence: read its terms, and drop the module or add the licence to deploy/notice/licences.go", m.Path, m.Version)
	}
	return nil
}
