package article

import (
	_ "embed" // for months.txt
	"strconv"
	"strings"
	"unicode/utf8"
)

// months are the names of months by their first letters, as many as tell them from those of the other
// months in all languages here: of Europe, of West, Central and South Asia, Thai, Filipino. Where two
// languages have one name for different months, that of the larger one counts.
var months = func() map[string]string {
	all, month := map[string]string{}, 0
	for list := range strings.Lines(monthNames) {
		month++
		for name := range strings.FieldsSeq(list) {
			all[name] = strconv.Itoa(month)
		}
	}
	return all
}()

// monthNames has a line for each month.
//
//go:embed months.txt
var monthNames string

// mostLetters is how many letters a name has in months.
const mostLetters = 8

// month is the number of a month, by its name or how that begins; "" for none.
func month(name string) string {
	name = strings.ToLower(name)
	if first, n := utf8.DecodeRuneInString(name); first == 'ב' { // in Hebrew "in" is part of the word
		name = name[n:]
	}
	if m := months[name]; m != "" {
		return m
	}
	var ends []int // of its first letters, the longer beginnings last
	for i := range name {
		if len(ends) == mostLetters {
			break
		}
		if i > 0 {
			ends = append(ends, i)
		}
	}
	for i := len(ends) - 1; i > 0; i-- { // two letters at least
		if m := months[name[:ends[i]]]; m != "" {
			return m
		}
	}
	return ""
}
