package value

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/currency"
)

// Amount is an amount of money.
type Amount struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"` // ISO 4217
}

// ParseCurrency checks an ISO 4217 code; "" is allowed.
func ParseCurrency(s string) error {
	if s == "" {
		return nil
	}
	if u, err := currency.ParseISO(s); err != nil || u.String() != s {
		return fmt.Errorf("currency %q: want a code of ISO 4217, such as EUR", s)
	}
	return nil
}

// signs are the signs of currencies, longer ones first. For a sign of several
// currencies a text needs a default currency.
var signs = []struct {
	text string
	of   []string
}{
	{"US$", []string{"USD"}}, {"NT$", []string{"TWD"}}, {"HK$", []string{"HKD"}}, {"NZ$", []string{"NZD"}}, {"CA$", []string{"CAD"}}, {"AU$", []string{"AUD"}},
	{"MX$", []string{"MXN"}}, {"R$", []string{"BRL"}}, {"A$", []string{"AUD"}}, {"C$", []string{"CAD"}}, {"S$", []string{"SGD"}},
	{"$", []string{"USD", "CAD", "AUD", "NZD", "SGD", "HKD", "TWD", "MXN", "CLP", "COP", "ARS"}},
	{"€", []string{"EUR"}}, {"£", []string{"GBP"}}, {"₩", []string{"KRW"}}, {"원", []string{"KRW"}}, {"円", []string{"JPY"}}, {"元", []string{"CNY", "TWD", "HKD"}},
	{"¥", []string{"JPY", "CNY"}}, {"₹", []string{"INR"}}, {"₽", []string{"RUB"}}, {"₫", []string{"VND"}},
	{"฿", []string{"THB"}}, {"₺", []string{"TRY"}}, {"₴", []string{"UAH"}}, {"₪", []string{"ILS"}}, {"₱", []string{"PHP"}}, {"₦", []string{"NGN"}}, {"₸", []string{"KZT"}},
}

// words are the signs that are words.
var words = map[string][]string{
	"kr": {"SEK", "NOK", "DKK", "ISK"}, "zł": {"PLN"}, "zl": {"PLN"}, "kč": {"CZK"}, "ft": {"HUF"}, "лв": {"BGN"}, "lei": {"RON"}, "fr": {"CHF"}, "sfr": {"CHF"},
	"rp": {"IDR"}, "rm": {"MYR"}, "rs": {"INR", "PKR", "LKR"}, "руб": {"RUB"}, "р": {"RUB"}, "tl": {"TRY"}, "euro": {"EUR"}, "euros": {"EUR"}, "dh": {"AED", "MAD"},
	"us": {"USD"}, "won": {"KRW"}, "yen": {"JPY"},
}

var word = regexp.MustCompile(`\p{L}+`)

// currencies returns the currencies that a text, without its number, may mean; nil
// if it names none.
func currencies(s string) (of []string, rest string) {
	meet := func(more []string) {
		if of == nil {
			of = slices.Clone(more)
			return
		}
		of = slices.DeleteFunc(of, func(c string) bool { return !slices.Contains(more, c) })
	}
	for _, sign := range signs {
		if strings.Contains(s, sign.text) {
			s = strings.ReplaceAll(s, sign.text, " ")
			meet(sign.of)
		}
	}
	rest = word.ReplaceAllStringFunc(s, func(w string) string {
		if of2, ok := words[strings.ToLower(w)]; ok {
			meet(of2)
			return " "
		}
		if u, err := currency.ParseISO(w); err == nil && u.String() == w {
			meet([]string{w})
			return " "
		}
		return w
	})
	return of, rest
}

// currencyOnly reports whether a text is empty or names only a currency.
func currencyOnly(s string) bool {
	_, rest := currencies(s)
	return strings.Trim(rest, " .") == ""
}

// Money reads the only amount in a text: "€ 3.299,00", "US$5", "12,- kr". other is
// the currency of a text that names none, or whose sign stands for several
// currencies of which other is one; without other such a sign means the currency of the
// locale's region. Two raised digits are cents where the locale is known.
func Money(text string, l Locale, other string) (Amount, error) {
	s := digits(text)
	cents := raised.FindStringSubmatch(s)
	if cents != nil {
		if l.decimal == 0 {
			return Amount{}, fmt.Errorf("%q may be %s.%s, or %[2]s and %[3]s: set the site's or the field's locale, or choose one element by the selector", text, cents[1], cents[3])
		}
		s = raised.ReplaceAllString(s, "${1}"+string(l.decimal)+"${3}${2}${4}")
	}
	n, err := find(s)
	if err != nil {
		return Amount{}, err
	}
	f, err := n.float(text, l)
	if err != nil {
		return Amount{}, err
	}
	of, _ := currencies(n.before + " " + n.after)
	a, err := amountIn(f, of, text, other, l.money)
	if scale, _ := currency.Standard.Rounding(currency.MustParseISO(cmp.Or(a.Currency, "EUR"))); err == nil && cents != nil && scale != 2 {
		return Amount{}, fmt.Errorf("%q may be %s%s, or %[2]s and %[3]s, and %[4]s has no cents: choose one element by the selector", text, cents[1], cents[3], a.Currency)
	}
	return a, err
}

// raised matches two raised digits, which may be the cents of the number before them: 14↑99, 14€↑99.
var raised = regexp.MustCompile(`([0-9]+) ?(\p{Sc}?) ?` + string(Raised) + `([0-9]{2})([^0-9]|$)`)

// amountIn returns an amount in the only one of the currencies that may be meant.
func amountIn(f float64, of []string, text, other, home string) (Amount, error) {
	switch {
	case of == nil && other == "":
		return Amount{}, fmt.Errorf("%q names no currency: set the site's or the field's currency", text)
	case of == nil:
		return Amount{f, other}, nil
	case len(of) == 0:
		return Amount{}, fmt.Errorf("%q names several currencies", text)
	case len(of) == 1:
		return Amount{f, of[0]}, nil
	case slices.Contains(of, cmp.Or(other, home)):
		return Amount{f, cmp.Or(other, home)}, nil
	}
	return Amount{}, fmt.Errorf("the currency of %q may be any of %s: set the site's or the field's currency", text, strings.Join(of, ", "))
}
