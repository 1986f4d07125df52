package main

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/google/licenseclassifier/v2/assets"
)

// allowedLicences are the licences under which a module may be linked into a program
// that is itself under Apache-2.0 and distributed as a binary (SPDX).
var allowedLicences = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "MPL-2.0", "Unicode-DFS-2016", "Zlib", "ICU", "CC0-1.0", "Unlicense"}

// mit0 is a licence that the classifier does not know: MIT without the condition to pass
// on its text (spdx.org/licenses/MIT-0).
const mit0 = `Permission is hereby granted, free of charge, to any person obtaining a copy of this
software and associated documentation files (the "Software"), to deal in the Software
without restriction, including without limitation the rights to use, copy, modify,
merge, publish, distribute, sublicense, and/or sell copies of the Software, and to
permit persons to whom the Software is furnished to do so.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED,
INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A
PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT
HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION
OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE
SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`

// classifier returns a function that names the licences whose texts a file has.
func classifier() (func([]byte) []string, error) {
	known, err := assets.DefaultClassifier()
	if err != nil {
		return nil, fmt.Errorf("loading the texts of known licences: %w", err)
	}
	known.AddContent("License", "MIT-0", "license.txt", []byte(mit0))
	return func(text []byte) []string {
		var ids []string
		for _, match := range known.Match(known.Normalize(text)).Matches {
			if match.MatchType == "License" || match.MatchType == "Header" {
				ids = append(ids, match.Name)
			}
		}
		slices.Sort(ids)
		return slices.Compact(ids)
	}, nil
}

const noticeHead = `Seed Engine
Copyright The Seed Engine Authors

Licensed under the Apache License, Version 2.0; see LICENSE.

The released programs link the modules below. Each text stands once, behind the
list of the modules that carry it. ` + "`make release`" + ` writes this file.
`

// pdfium are the licences of PDFium, of the libraries and of the C library that are
// in go-pdfium's WebAssembly program, whose module has its own licence only.
//
//go:embed pdfium
var pdfium embed.FS

// cl100k is the licence of the vocabulary in transforms/docs/chunk.
//
//go:embed cl100k_base.txt
var cl100k string

// notice is the text of NOTICE: each licence text once, with its modules; then those
// of what is in PDFium, and of the vocabulary.
func notice(modules []module) (string, error) {
	of := map[string][]string{}
	var texts []licence
	for _, m := range modules {
		for _, l := range m.texts {
			if _, seen := of[l.text]; !seen {
				texts = append(texts, l)
			}
			of[l.text] = append(of[l.text], strings.TrimSpace(m.Path+" "+m.Version))
		}
	}
	var out strings.Builder
	out.WriteString(noticeHead)
	for _, l := range texts {
		kind := l.id
		if kind == "" {
			kind = "notice"
		}
		writeNotice(&out, kind+": "+strings.Join(of[l.text], ", "), l.text)
	}
	bundled, err := pdfium.ReadDir("pdfium")
	if err != nil {
		return "", fmt.Errorf("reading the licences of what is in PDFium: %w", err)
	}
	for _, f := range bundled {
		text, err := pdfium.ReadFile("pdfium/" + f.Name())
		if err != nil {
			return "", fmt.Errorf("reading a licence of what is in PDFium: %w", err)
		}
		writeNotice(&out, "in the PDFium of github.com/klippa-app/go-pdfium: "+strings.TrimSuffix(f.Name(), ".txt"), string(text))
	}
	writeNotice(&out, "in the PDFium of github.com/klippa-app/go-pdfium: abseil-cpp", "Apache License, Version 2.0; see LICENSE.")
	writeNotice(&out, "MIT: the vocabulary cl100k_base of github.com/openai/tiktoken, as github.com/tiktoken-go/tokenizer carries it", cl100k)
	return out.String(), nil
}

func writeNotice(out *strings.Builder, head, text string) {
	fmt.Fprintf(out, "\n%s\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), head, strings.Repeat("-", 80), strings.TrimSpace(text))
}
