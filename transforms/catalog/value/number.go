// Package value reads numbers, amounts of money and dates as people write them.
// A text that can be read in two ways is an error, which says how to choose one. No promise: see docs/library.md.
package value

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/currency"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/number"
	"golang.org/x/text/unicode/norm"
)

// Locale says how numbers and dates are written in a language and region. The zero
// value is the unknown locale: then a text must have only one possible reading.
type Locale struct {
	name    string
	decimal rune // 0: unknown
	order   order
	money   string // currency of the region that its name has, "" if it has none
	months  string // language whose names of months are known, in addition to English
}

// Programs is how programs write numbers. Which of day and month is first in their dates is not known.
var Programs = Locale{name: "en", decimal: '.', months: "en"}

// ParseLocale reads a BCP 47 tag such as de-CH; "" is the unknown locale.
func ParseLocale(s string) (Locale, error) {
	if s == "" {
		return Locale{}, nil
	}
	tag, err := language.Parse(s)
	if err != nil {
		return Locale{}, fmt.Errorf("locale %q: want a language and perhaps a region, such as de, de-CH or en-US: %w", s, err)
	}
	base, _ := tag.Base()
	region, sure := tag.Region()
	l := Locale{name: s, months: base.String(), order: orderOf(base.String(), region.String())}
	if unit, ok := currency.FromRegion(region); ok && sure == language.Exact {
		l.money = unit.String()
	}
	sample := message.NewPrinter(tag).Sprint(number.Decimal(0.5))
	for _, r := range sample {
		if !unicode.IsDigit(r) {
			l.decimal = r
		}
	}
	return l, nil
}

// plain matches a number as programs write it.
var plain = regexp.MustCompile(`^[-+]?\d+\.?\d*[eE][-+]?\d+$`)

// Number reads the only number in a text: "€ 3.299,00", "2,5 kg", "1'299.00".
func Number(text string, l Locale) (float64, error) {
	if s := strings.TrimSpace(text); plain.MatchString(s) {
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return f, nil
		}
	}
	n, err := find(text)
	if err != nil {
		return 0, err
	}
	return n.float(text, l)
}

// Integer reads the only whole number in a text: decimal, or hexadecimal with 0x.
func Integer(text string, l Locale) (int64, error) {
	s := strings.TrimSpace(text)
	if hex, ok := strings.CutPrefix(strings.ToLower(s), "0x"); ok {
		i, err := strconv.ParseInt(hex, 16, 64)
		if err != nil {
			return 0, fmt.Errorf("%q is no hexadecimal number", text)
		}
		return i, nil
	}
	n, err := find(text)
	if err != nil {
		return 0, err
	}
	// A whole number has no decimal sign, unless the locale's decimal sign is in the text.
	if l.decimal == 0 && !n.spaced() {
		l.decimal = noSign
	}
	digits, fraction, err := n.split(l)
	if err != nil {
		return 0, fmt.Errorf("%q: %w", text, err)
	}
	if strings.Trim(fraction, "0") != "" {
		return 0, fmt.Errorf("%q is no whole number", text)
	}
	i, err := strconv.ParseInt(n.sign+digits, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is too large", text)
	}
	return i, nil
}

// noSign stands for the decimal sign of a number that has none.
const noSign = utf8.MaxRune

// numeral is a number in a text.
type numeral struct {
	sign          string // "" or "-"
	text          string // digits and signs between them
	before, after string // the text around it
}

// A text of several elements has one of these between the digits of two elements: Raised if
// the second one is raised, such as cents.
const (
	Apart  = '¦'
	Raised = '↑'
)

// Signs between the digits of a number. White space is one of them, because pages
// also write ordinary spaces where non-breaking ones belong.
const (
	spaces      = " _'’ʼ\u00a0\u2009\u202f"
	decimals    = ".,٫"
	arabicGroup = '٬'
)

var (
	numbers    = regexp.MustCompile(`[0-9](?:[0-9.,٫٬ _'’ʼ\x{00a0}\x{2009}\x{202f}]*[0-9])?`)
	multiplier = regexp.MustCompile(`^\s*(?i:k|mio|mn|mln|mrd|bn|million(?:s|en)?|milliarden?|milliards?|millones|billion(?:en)?|thousand|tausend|tsd|mille|lakhs?|crores?|千|万|萬|億|亿|천|만|억|백만|천만)(?:[^\p{L}]|$|원|円|元)`)
)

// digits writes the decimal digits of all scripts as ASCII, and characters that are another's form as that one: wide signs, ㎝, ㋿.
// Fractions, powers and numbers in circles stay: without their form they are other numbers.
func digits(s string) string {
	ascii := true
	for i := 0; ascii && i < len(s); i++ {
		ascii = s[i] < utf8.RuneSelf
	}
	if ascii {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r >= utf8.RuneSelf && unicode.IsDigit(r):
			b.WriteRune('0' + digitOf(r))
		case (r >= '\u3000' || unicode.Is(letterlike, r)) && !unicode.Is(unicode.No, r):
			b.WriteString(norm.NFKC.String(string(r)))
		default:
			b.WriteRune(r)
		}
	}
	return norm.NFC.String(b.String())
}

// letterlike is the block with ℃ and ℓ.
var letterlike = &unicode.RangeTable{R16: []unicode.Range16{{Lo: 0x2100, Hi: 0x214f, Stride: 1}}}

// digitOf is the value of a decimal digit. Those of a script follow one another, from 0 to 9 (Unicode, 4.6).
func digitOf(r rune) rune {
	for _, of := range unicode.Nd.R16 {
		if r >= rune(of.Lo) && r <= rune(of.Hi) {
			return (r - rune(of.Lo)) % 10
		}
	}
	for _, of := range unicode.Nd.R32 {
		if r >= rune(of.Lo) && r <= rune(of.Hi) {
			return (r - rune(of.Lo)) % 10
		}
	}
	return 0
}

// find returns the only number of a text.
func find(text string) (numeral, error) {
	s := digits(text)
	all := numbers.FindAllStringIndex(s, -1)
	switch {
	case len(all) == 0:
		return numeral{}, fmt.Errorf("%q has no number", text)
	case len(all) > 1 && strings.ContainsAny(s, string(Apart)+string(Raised)):
		return numeral{}, fmt.Errorf("%q has digits of several elements: it may be %s: choose one element by the selector, or one number by a regexp", text, readings(s, all))
	case len(all) > 1:
		return numeral{}, fmt.Errorf("%q has several numbers: choose one by a regexp", text)
	}
	n := numeral{text: s[all[0][0]:all[0][1]], before: s[:all[0][0]], after: s[all[0][1]:]}
	power, _ := utf8.DecodeRuneInString(n.after)
	if unicode.Is(unicode.No, power) || strings.ContainsFunc(n.before+n.after, func(r rune) bool { return unicode.Is(unicode.No, r) && r != '²' && r != '³' }) {
		return numeral{}, fmt.Errorf("%q has a fraction or a number of another form", text)
	}
	if multiplier.MatchString(n.after) {
		return numeral{}, fmt.Errorf("%q gives its number in thousands or millions, which is not supported: read it as text", text)
	}
	head := n.before
	if rest, ok := cutLast(head, ".,"); ok && (rest == "" || !isWord(last(rest))) {
		n.text, head = "0"+head[len(rest):]+n.text, rest // .5
	}
	if rest, ok := cutLast(head, "-−–"); ok {
		switch {
		case rest != "" && isWord(last(rest)):
			return numeral{}, fmt.Errorf("the digits of %q belong to a word: choose them by a regexp", text)
		default:
			n.sign = "-"
		}
	} else if rest := strings.TrimSpace(head); strings.HasPrefix(rest, "-") || strings.HasPrefix(rest, "−") {
		if _, sized := utf8.DecodeRuneInString(rest); currencyOnly(strings.TrimSpace(rest[sized:])) {
			n.sign = "-" // -$5, - 5
		}
	}
	if head != "" && isWord(last(head)) {
		word := head[strings.LastIndexFunc(head, func(r rune) bool { return !isWord(r) })+1:]
		if !currencyOnly(word) {
			return numeral{}, fmt.Errorf("the digits of %q belong to a word: choose them by a regexp", text)
		}
	}
	if rest := strings.TrimLeft(n.after, "-−–—"); rest != n.after && strings.TrimSpace(rest) == "" {
		return numeral{}, fmt.Errorf("%q ends in a dash: it may be negative or the beginning of a range", text)
	}
	return n, nil
}

// readings names what numbers next to each other may mean.
func readings(s string, all [][]int) string {
	var parts []string
	for _, at := range all[:min(len(all), 4)] {
		parts = append(parts, s[at[0]:at[1]])
	}
	apart, one := strings.Join(parts, " and "), strings.Join(parts, "")
	switch last := parts[len(parts)-1]; {
	case strings.ContainsAny(one, decimals):
		return strings.Join(parts, " or ")
	case len(parts) == 2 && len(last) == 2:
		return parts[0] + "." + last + ", " + one + ", or " + apart
	}
	return one + ", or " + apart
}

func last(s string) rune {
	r, _ := utf8.DecodeLastRuneInString(s)
	return r
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

func cutLast(s, signs string) (rest string, ok bool) {
	r, n := utf8.DecodeLastRuneInString(s)
	if n == 0 || !strings.ContainsRune(signs, r) {
		return s, false
	}
	return s[:len(s)-n], true
}

func (n numeral) spaced() bool { return strings.ContainsAny(n.text, spaces) }

func (n numeral) float(text string, l Locale) (float64, error) {
	whole, fraction, err := n.split(l)
	if err != nil {
		return 0, fmt.Errorf("%q: %w", text, err)
	}
	f, err := strconv.ParseFloat(n.sign+whole+"."+fraction+"0", 64)
	if err != nil || math.IsInf(f, 0) {
		return 0, fmt.Errorf("%q is too large", text)
	}
	if kept := strconv.FormatFloat(math.Abs(f), 'f', 0, 64); fraction == "" && len(whole) > 15 && kept != strings.TrimLeft(whole, "0") {
		return 0, fmt.Errorf("%q has more digits than a number keeps, which makes it %s: use the type integer or text", text, kept)
	}
	return f, nil
}

var errGroups = errors.New("its digits are not in groups of three")

// split returns a number's digits before and after its decimal sign.
func (n numeral) split(l Locale) (whole, fraction string, err error) {
	sign := l.decimal
	if sign == 0 {
		if sign, err = n.decide(); err != nil {
			return "", "", err
		}
	}
	whole = n.text
	if i := strings.IndexRune(n.text, sign); i >= 0 {
		whole, fraction = n.text[:i], n.text[i+utf8.RuneLen(sign):]
		if strings.ContainsFunc(fraction, func(r rune) bool { return r < '0' || r > '9' }) {
			if l.name != "" {
				return "", "", fmt.Errorf("it is not written as in the locale %s, where %q stands before the decimals", l.name, sign)
			}
			return "", "", errGroups
		}
	}
	whole, err = ungroup(whole)
	if err != nil && l.name != "" {
		err = fmt.Errorf("it is not written as in the locale %s, where %q stands before the decimals: %w", l.name, sign, err)
	}
	return whole, fraction, err
}

// decide finds the decimal sign of a number without a locale.
func (n numeral) decide() (rune, error) {
	var signs []rune // . and , in their order
	for _, r := range n.text {
		switch {
		case strings.ContainsRune(decimals, r):
			signs = append(signs, r)
		case r == arabicGroup:
			return '٫', nil
		}
	}
	if len(signs) == 0 {
		if n.spaced() && !strings.ContainsAny(n.text, "'’ʼ_") {
			return 0, errors.New("it may be one number or several: set the site's or the field's locale")
		}
		return noSign, nil
	}
	end := signs[len(signs)-1]
	switch alike := len(slices.Compact(slices.Sorted(slices.Values(signs)))) == 1; {
	case alike && len(signs) > 1:
		return noSign, nil // 1.299.000: they separate groups
	case !alike && slices.Index(signs, end) < len(signs)-1:
		return 0, errGroups
	case !alike || n.spaced():
		return end, nil
	}
	i := strings.IndexRune(n.text, end)
	before, after := n.text[:i], n.text[i+utf8.RuneLen(end):]
	if len(after) == 3 && len(before) <= 3 && before[0] != '0' && end != '٫' {
		return 0, fmt.Errorf("it may be %s.%s or %s%s: set the site's or the field's locale", before, after, before, after)
	}
	return end, nil
}

// ungroup removes the signs between groups of digits, if the groups are
// of three, or as in India: 12,34,567.
func ungroup(s string) (string, error) {
	groups := strings.FieldsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if len(groups) == 1 {
		return groups[0], nil
	}
	signs := strings.FieldsFunc(s, func(r rune) bool { return r >= '0' && r <= '9' })
	three, two := true, true
	for i, g := range groups {
		switch {
		case i == 0:
			three, two = three && len(g) <= 3, two && len(g) <= 2
		case i == len(groups)-1:
			three, two = three && len(g) == 3, two && len(g) == 3
		default:
			three, two = three && len(g) == 3, two && len(g) == 2
		}
	}
	if len(slices.Compact(signs)) != 1 || len([]rune(signs[0])) != 1 || !three && (!two || signs[0] != ",") {
		return "", errGroups
	}
	return strings.Join(groups, ""), nil
}
