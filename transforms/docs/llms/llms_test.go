package llms_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/docs/llms"
)

func TestLinks(t *testing.T) {
	text := "# Demo\n\n> About it\n\n## Docs\n\n- [Start](https://a.example/docs/start.md): the first steps\n" +
		"- [Wiki](/docs/wiki_(old)) and [a [b]](x) ![an image](i.png)\n```\n[code](/no)\n```\n* [Titled](<b.md> \"a title\")\n"
	require.Equal(t, []llms.Link{{"Start", "https://a.example/docs/start.md"}, {"Wiki", "/docs/wiki_(old)"}, {"Titled", "b.md"}}, llms.Links(text, 10))
	require.Len(t, llms.Links(text, 2), 2)
	require.Empty(t, llms.Links("", 2))
}

// The ways in which generators write where a page comes from.
func TestPages(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []llms.Page
	}{
		{"a line below the heading", "# Demo docs\n\n# Start\nSource: https://a.example/docs/start\n\nRun it.\n\n# Section\n\nMore.\n\n```sh\n# Comment\nURL: https://a.example/no\n```\n\n# Errors\nSource: https://a.example/docs/errors\n\nThey happen.\n",
			[]llms.Page{{"https://a.example/docs/start", "# Start\n\nRun it.\n\n# Section\n\nMore.\n\n```sh\n# Comment\nURL: https://a.example/no\n```"}, {"https://a.example/docs/errors", "# Errors\n\nThey happen."}}},
		{"front matter", "<page>\n---\ntitle: \"Start\"\nsource_url:\n  html: https://a.example/start/\n  md: https://a.example/start/index.md\n---\n\nRun it.\n\n</page>\n\n<page>\n---\ntitle: Errors\nsource_url: https://a.example/errors/\n---\n# Errors\n\nThey happen.\n</page>\n",
			[]llms.Page{{"https://a.example/start/", "# Start\n\nRun it."}, {"https://a.example/errors/", "# Errors\n\nThey happen."}}},
		{"in the heading", "# Start (/docs/start)\n\nRun it.\n\n---\n\n# [Errors](https://a.example/docs/errors)\n\nThey happen.",
			[]llms.Page{{"/docs/start", "# Start\n\nRun it."}, {"https://a.example/docs/errors", "# Errors\n\nThey happen."}}},
		{"no addresses", "# Start\n\nRun it.\n\n# Errors\n\nSee URL: https://a.example/x for more.\n", nil},
		{"empty", "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, llms.Pages(tt.text, 100))
			require.Equal(t, tt.want, llms.Pages(strings.ReplaceAll(tt.text, "\n", "\r\n"), 100))
		})
	}
}

func TestIsMarkdown(t *testing.T) {
	for text, want := range map[string]bool{"# Demo\n": true, "\ufeff# Demo": true, "Plain": true, "<page>\n---": true,
		"": false, " \n": false, "<!doctype html><title>Not found</title>": false, "\n<html>": false, `{"error":"no"}`: false, "a\x00b": false} {
		require.Equal(t, want, llms.IsMarkdown(text), "%q", text)
	}
}

func TestFront(t *testing.T) {
	require.Equal(t, "# Start\n\nRun it.", llms.Front("---\ntitle: 'Start'\nsidebar: 1\n---\n\nRun it."))
	require.Equal(t, "# Own\n", llms.Front("---\ntitle: Start\n---\n# Own\n"))
	require.Equal(t, "Own\n===\n\nText", llms.Front("---\ntitle: Start\n---\nOwn\n===\n\nText"))
	require.Equal(t, "# Start\n\nRun it.", llms.Front("\ufeff---\r\ntitle: Start\r\n---\r\nRun it."))
	require.Equal(t, "---\nnever closed", llms.Front("---\nnever closed"))
	require.Equal(t, "# Own\n---\n", llms.Front("# Own\n---\n"))
}

func TestTwin(t *testing.T) {
	for in, want := range map[string]string{
		"> ## Documentation Index\n> Fetch the complete documentation index at: https://docs.a.example/llms.txt\n> Use this file to discover all available pages before exploring further.\n\n# Start\n\n> The first steps\n\nRun it.":                                        "# Start\n\n> The first steps\n\nRun it.",
		"---\ntitle: Start\n---\n\n[Skip to content](#main-content)\n\n> Documentation Index  \n> Fetch the complete documentation index at: https://a.example/x/llms.txt  \n> Use this file to discover all available pages before exploring further.\n\n# Start\n\nRun it.": "# Start\n\nRun it.",
		"> ## Documentation Index\n\n> Fetch the complete documentation index at: https://a.example/llms.txt\n\n> Use this file to discover all available pages before exploring further.\n\n# Start\n\nRun it.":                                                              "# Start\n\nRun it.",
		"---\ntitle: Start\n---\n\nFor clean Markdown of any page, append .md to the page URL. For a complete documentation index, see https://a.example/llms.txt. For full documentation content, see https://a.example/llms-full.txt.\n\nRun it.":                           "# Start\n\nRun it.",
		"# llms.txt\n\nFetch llms.txt to see what there is.\n":                            "# llms.txt\n\nFetch llms.txt to see what there is.\n",
		"# A\n\n<Warning>\nIt is hot.\n</Warning>\n\nCall `a<B>()`.\n":                    "# A\n\n**Warning:**\n\n\nIt is hot.\n\n\nCall `a<B>()`.\n",
		"# A\n\n<Callout type=\"tip\" title=\"Mind\">\nb\n</Callout>\n":                   "# A\n\n**Tip:**\n\n**Mind**\n\n\nb\n\n",
		"# A\n\n<ParamField body=\"size\" type=\"integer\" required>\nb\n</ParamField>\n": "# A\n\n`size` integer required\n\n\nb\n\n",
		"Plain <b>text</b>": "Plain <b>text</b>",
	} {
		require.Equal(t, want, llms.Twin(in), in)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("# A\nSource: https://a.example/a\n\ntext [b](c)\n---\ntitle: x\nurl: /y\n---\nz")
	f.Add("import a from 'b'\n<A b={{c: `<D>`}}>`<E>`{/* f */}</A>\nexport const g = {\n")
	f.Add("<page>\n---\n```\n~~~")
	f.Fuzz(func(t *testing.T, text string) {
		pages := llms.Pages(text, 50)
		require.LessOrEqual(t, len(pages), 50)
		size := 0
		for _, p := range pages {
			require.NotEmpty(t, p.Address)
			size += len(p.Text)
		}
		require.LessOrEqual(t, size, 2*len(text)+50*8, "a page's text is in one page only")
		require.LessOrEqual(t, len(llms.Links(text, 20)), 20)
		llms.Front(text)
		llms.IsMarkdown(text)
		llms.MDX(text)
		llms.Twin(text)
	})
}

// Imports, exports, comments and tags of components go; their titles, their content and all
// code stay.
func TestMDX(t *testing.T) {
	for in, want := range map[string]string{
		"import A from 'a'\nimport {\n  B,\n} from \"b\"\nimport 'c.css'\nexport const d = {\n  e: 1,\n}\n\n# T\n": "\n# T\n",
		"import your data with the tool\nexport it later\n":                                                        "import your data with the tool\nexport it later\n",
		"<Tabs>\n<Tab title=\"npm\" on={() => a > b}>\nrun\n</Tab>\n</Tabs>\n":                                     "\n**npm**\n\n\nrun\n\n\n",
		"a <Icon.Big name=\"x>y\" /> b <b>c</b> <> d </>\n":                                                        "a  b <b>c</b>  d \n",
		"{/* not\nshown */}shown {value}\n":                                                                        "shown {value}\n",
		"call `List<String>` or ``a ` <B>`` now\n":                                                                 "call `List<String>` or ``a ` <B>`` now\n",
		"```jsx\nimport A from 'a'\n<A/>\n{/* b */}\n```\n<A/>after\n":                                             "```jsx\nimport A from 'a'\n<A/>\n{/* b */}\n```\nafter\n",
		"1 < 2 <Never ends\n":               "1 < 2 <Never ends\n",
		"one ` mark\n\n<A>two</A> ` mark\n": "one ` mark\n\ntwo ` mark\n",
		"export const broken = {\ntext\n":   "text\n",
	} {
		require.Equal(t, want, llms.MDX(in), in)
	}
}
