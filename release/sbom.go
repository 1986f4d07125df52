package main

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"path"
	"runtime/debug"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// writeSBOM writes a bill of materials, in CycloneDX's JSON format, of the modules
// that a program was linked from, read from the program itself. Two builds of the
// same commit have the same one.
func writeSBOM(w io.Writer, program string, modules []module) error {
	built, err := buildinfo.ReadFile(program)
	if err != nil {
		return fmt.Errorf("reading what %s was built from: %w", program, err)
	}
	terms := map[string][]string{}
	for _, m := range modules {
		terms[m.Path] = m.ids()
	}
	bom := cdx.NewBOM()
	main := component(built.Main.Path, built.Main.Version)
	main.Type, main.Name = cdx.ComponentTypeApplication, path.Join(built.Main.Path, "cmd", path.Base(built.Path))
	main.Licenses = &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}}
	bom.Metadata = &cdx.Metadata{Component: &main}
	for _, s := range built.Settings {
		if s.Key == "vcs.time" {
			if _, err := time.Parse(time.RFC3339, s.Value); err == nil {
				bom.Metadata.Timestamp = s.Value
			}
		}
	}
	parts := []cdx.Component{}
	goItself := &debug.Module{Path: standard, Version: strings.TrimPrefix(built.GoVersion, "go")}
	for _, dep := range append([]*debug.Module{goItself}, built.Deps...) {
		c := component(dep.Path, dep.Version)
		ids, known := terms[dep.Path]
		if !known {
			return fmt.Errorf("%s links %s, and `go list` of the same tree does not name it: build it from this tree, for Linux", program, dep.Path)
		}
		var all cdx.Licenses
		for _, id := range ids {
			all = append(all, cdx.LicenseChoice{License: &cdx.License{ID: id}})
		}
		c.Licenses = &all
		parts = append(parts, c)
	}
	bom.Components = &parts
	if err := cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		return fmt.Errorf("writing the bill of materials of %s: %w", program, err)
	}
	return nil
}

func component(modulePath, version string) cdx.Component {
	ref := "pkg:golang/" + modulePath + "@" + version
	return cdx.Component{Type: cdx.ComponentTypeLibrary, BOMRef: ref, Name: modulePath, Version: version, PackageURL: ref}
}
