package article

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// calendar is how a page writes its days.
type calendar struct {
	*time.Location
	monthFirst bool      // 11/03/2026 is 3 November
	day        time.Time // in the page's address, zero for none
}

// calendar is how the page writes its days. American English has the month first, unless the page's zone or address is of
// another country.
func (p *Page) calendar(zone *time.Location) calendar {
	c := calendar{Location: zone}
	lang := strings.ReplaceAll(strings.ToLower(p.lang), "_", "-")
	if lang == "en" || lang == "" {
		lang = strings.ReplaceAll(strings.ToLower(p.meta["og:locale"]), "_", "-")
	}
	american := slices.Contains(americanZones, zone.String())
	c.monthFirst = lang == "en-us" && (american || zone.String() == "UTC") || american && (lang == "" || lang == "en")
	if u, err := p.address(); err == nil {
		c.day = DayIn(u, zone)
		if top := u.Hostname()[strings.LastIndexByte(u.Hostname(), '.')+1:]; len(top) == 2 && !slices.Contains(openDomains, top) {
			c.monthFirst = false
		}
	}
	return c
}

var (
	americanZones = []string{"America/New_York", "America/Detroit", "America/Chicago", "America/Denver", "America/Boise", "America/Phoenix", "America/Los_Angeles", "America/Anchorage", "Pacific/Honolulu", "Asia/Manila"}
	// openDomains are domains of countries that sites of other countries have.
	openDomains = []string{"us", "ph", "co", "io", "tv", "me", "ai", "fm", "ly", "to", "gg", "is", "cc"}
	// american are time zones whose readers write the month first.
	american = regexp.MustCompile(`\b[ECMP][SD]T\b`)
)

// isMonthFirst reports whether the first number of a day in three numbers is the month. If both readings are possible, the day
// in the page's address decides. inAmerica is set if the time of day has an American zone.
func (c calendar) isMonthFirst(m []string, inAmerica bool) bool {
	first, _ := strconv.Atoi(m[1])
	second, _ := strconv.Atoi(m[2])
	switch {
	case second > 12:
		return true
	case first > 12 || !strings.ContainsAny(m[0], "/-"):
		return false
	case c.day.Day() == second && int(c.day.Month()) == first && !c.day.IsZero():
		return true
	case c.day.Day() == first && int(c.day.Month()) == second && !c.day.IsZero():
		return false
	}
	return c.monthFirst || inAmerica
}

const bangkok = "Asia/Bangkok"

// buddhist returns the Gregorian year of a year in Thailand's calendar, which is 543 years ahead, and other years as they are.
// s is a text in the page's language.
func buddhist(year, s string, zone *time.Location) string {
	if n, err := strconv.Atoi(year); err == nil && n >= 2500 && n < 2600 && (strings.ContainsFunc(s, thai) || zone.String() == bangkok) {
		return strconv.Itoa(n - 543)
	}
	return year
}

var (
	eraYear   = regexp.MustCompile(`(令和|平成|昭和)\s?([0-9０-９]{1,2}|元)\s?年`)
	eras      = map[string]int{"令和": 2018, "平成": 1988, "昭和": 1925} // the year before the first
	thaiShort = regexp.MustCompile(`([0-9๐-๙]{1,2}\s+[\x{0e00}-\x{0e4f}.]+\s+)([5-9๕-๙][0-9๐-๙])(\s|$|,)`)
)

// otherYears writes the years of Japanese eras, and Thai years of two digits, with four digits.
func otherYears(s string) string {
	if strings.Contains(s, "年") {
		s = eraYear.ReplaceAllStringFunc(s, func(found string) string {
			m := eraYear.FindStringSubmatch(found)
			n, err := strconv.Atoi(strings.Map(plainTime, m[2]))
			if err != nil {
				n = 1
			}
			return strconv.Itoa(eras[m[1]]+n) + "年"
		})
	}
	if strings.ContainsFunc(s, thai) {
		s = thaiShort.ReplaceAllString(s, "${1}25$2$3")
	}
	return s
}

// persian reports whether a character is a digit of Persian, or a letter that Arabic has not.
func persian(c rune) bool { return '۰' <= c && c <= '۹' || c == 'ی' || c == 'پ' || c == 'گ' }

var (
	hijriMonths = strings.Fields("فروردین اردیبهشت خرداد تیر مرداد شهریور مهر آبان آذر دی بهمن اسفند")
	hijriNamed  = regexp.MustCompile(`([0-9]{1,2})\s+(` + strings.Join(hijriMonths, "|") + `)(?:\s*ماه)?[\s،,]+(1[34][0-9]{2})`)
	hijriNumber = regexp.MustCompile(`(?:^|[^0-9])(1[34][0-9]{2})[/-]([0-9]{1,2})[/-]([0-9]{1,2})(?:[^0-9]|$)`)
	hijriClock  = regexp.MustCompile(`([0-9]{1,2}):([0-9]{2})`)
)

// solarHijri reads a day of Iran's and Afghanistan's calendar, with digits of ASCII.
func solarHijri(s string, zone *time.Location) (time.Time, bool) {
	var year, month, day int
	if m := hijriNamed.FindStringSubmatch(s); m != nil {
		day, _ = strconv.Atoi(m[1])
		month = slices.Index(hijriMonths, m[2]) + 1
		year, _ = strconv.Atoi(m[3])
	} else if m := hijriNumber.FindStringSubmatch(s); m != nil {
		year, _ = strconv.Atoi(m[1])
		month, _ = strconv.Atoi(m[2])
		day, _ = strconv.Atoi(m[3])
	}
	if month < 1 || month > 12 || day < 1 || day > 31 {
		return time.Time{}, false
	}
	// A cycle of 33 years has 8 leap years. The first six months have 31 days.
	y := year + 1595
	days := -355668 + 365*y + y/33*8 + (y%33+3)/4 + day + 30*(month-1) + min(month-1, 6) // since 1 January of the year 0
	hour, minute := 0, 0
	if m := hijriClock.FindStringSubmatch(s); m != nil {
		hour, _ = strconv.Atoi(m[1])
		minute, _ = strconv.Atoi(m[2])
	}
	t := time.Date(0, time.January, 1+days, hour, minute, 0, 0, zone)
	return t, plausible(t)
}
