package content

import (
	"strings"
)

// Escape writes plain text as a paragraph of Markdown.
func Escape(text string) string {
	w := markdown{markBytes: 1}
	w.text(text)
	return w.String()
}

// Heading writes plain text as a heading, "" without text.
func Heading(level int, text string) string {
	w := markdown{markBytes: 1, heading: true, lead: strings.Repeat("#", level) + " "}
	w.text(text)
	return w.String()
}

// Code writes text as a fenced code block.
func Code(text string) string {
	fence := fenceFor(text)
	return fence + "\n" + text + "\n" + fence
}
