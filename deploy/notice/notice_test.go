package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// NOTICE names every linked module, and each is under a licence that allows it.
func TestNotice(t *testing.T) {
	t.Setenv("GOFLAGS", "") // as goreleaser calls it
	modules, err := readLinked("../..")
	require.NoError(t, err)
	want, err := notice(modules)
	require.NoError(t, err)
	require.NotContains(t, want, "spiffe", "of gRPC, which the released programs do not link")
	for _, line := range []string{"MIT: github.com/schollz/progressbar/v3 ", "BSD-3-Clause: std, ", "in the PDFium of github.com/klippa-app/go-pdfium: freetype",
		"MIT: the vocabulary cl100k_base of github.com/openai/tiktoken"} {
		assert.Contains(t, want, "\n"+line, "there is no line %q", line)
	}
}

func TestReadLicences(t *testing.T) {
	identify, err := classifier()
	require.NoError(t, err)
	apache, err := os.ReadFile("../../LICENSE")
	require.NoError(t, err)
	gpl := "This program is free software: you can redistribute it and/or modify it under the terms of the GNU General Public License as published by the Free Software Foundation, either version 3 of the License, or (at your option) any later version. This program is distributed in the hope that it will be useful, but WITHOUT ANY WARRANTY; without even the implied warranty of MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE. See the GNU General Public License for more details. You should have received a copy of the GNU General Public License along with this program. If not, see <https://www.gnu.org/licenses/>."
	for name, c := range map[string]struct {
		files map[string]string
		id    string
		err   string
	}{
		"allowed":          {files: map[string]string{"LICENSE": string(apache), "NOTICE": "Copyright somebody"}, id: "Apache-2.0"},
		"documents' terms": {files: map[string]string{"LICENSE": string(apache), "LICENSE.docs": gpl}, id: "Apache-2.0"},
		"not allowed":      {files: map[string]string{"LICENSE": string(apache), "COPYING": gpl}, err: "example.com/m v1.0.0: COPYING is under GPL-3.0, which is not among the allowed licences"},
		"no terms":         {files: map[string]string{"README": "hello"}, err: "none of its files has a known licence"},
		"unknown terms":    {files: map[string]string{"LICENSE": "You may not."}, err: "none of its files has a known licence"},
	} {
		t.Run(name, func(t *testing.T) {
			m := module{Path: "example.com/m", Version: "v1.0.0", Dir: t.TempDir()}
			for file, text := range c.files {
				require.NoError(t, os.WriteFile(filepath.Join(m.Dir, file), []byte(text), 0o600))
			}
			err := m.readLicences(identify)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.id, m.texts[0].id)
		})
	}
}
