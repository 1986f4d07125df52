package docsim

import (
	"embed"
	"hash/fnv"
	"math/rand/v2"
	"strings"
)

// The texts are data: how the generators of documentation wrap a page (pages), and sentences for sections, so that these are about
// as long as in real documentation, and as different: of the chunks of real documentation about one in a hundred is nearly like
// another.
//
//go:embed pages remarks.txt remarks-ko.txt
var files embed.FS

func read(name string) string {
	b, err := files.ReadFile(name)
	if err != nil {
		panic(err) // the build is broken
	}
	return strings.TrimSuffix(string(b), "\n")
}

// nextjs is a site of its own making on Next.js: open and end wrap the content.
func nextjs(lang, before, open, end string) string {
	return strings.NewReplacer("{{LANG}}", lang, "{{BEFORE}}", before, "{{OPEN}}", open, "{{CLOSE}}", end).Replace(read("pages/nextjs.html"))
}

// remarks are a sentence on each line. %s is what the section is about.
var remarks, koreanRemarks = strings.Split(read("remarks.txt"), "\n"), strings.Split(read("remarks-ko.txt"), "\n")

// sections are the made-up text of a page; the subject makes it the page's own.
func (p provider) sections(subject string) []section {
	subject = strings.ReplaceAll(subject, "-", " ")
	out := p.outline(subject)
	of, most := remarks, 7
	if p.korean {
		of, most = koreanRemarks, 4
	}
	for i := range out {
		name := fnv.New64a()
		_, _ = name.Write([]byte(p.name + "/" + subject + "/" + out[i].Heading)) // a hash takes everything
		for _, n := range rand.New(rand.NewPCG(name.Sum64(), 0)).Perm(len(of))[:most] {
			out[i].Text += " " + strings.ReplaceAll(of[n], "%s", subject+" "+strings.ToLower(out[i].Heading))
		}
	}
	return out
}
