package article

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/newsfork/seed-engine/transforms/parse/zonename"
)

// The time of a day after a date, with numbers for hour, minute, second and the
// minute of the spoken form: 13:05:00, 1시 5분, 1시.
const (
	spoken = `\s?[시時](?:\s?(\d{1,2})\s?[분分]|[^가-힣\d]|$)`
	// monthName is a word, or one of Thai's with full stops: ม.ค.
	monthName = `(\p{L}[\p{L}\p{M}]+|[\p{L}\p{M}]{1,2}\.\p{L})[.׳॰]?`
	clock     = `(?:[^\d\n]{0,12}?(\d{1,2})(?::(\d{2})(?::(\d{2}))?|` + spoken + `))?`
)

var (
	isoDate    = regexp.MustCompile(`\b((?:19|20)\d{2})-(\d{1,2})-(\d{1,2})(?:[^\d\n]{1,12}?(\d{1,2})(?::(\d{2})(?::(\d{2})(?:[.,]\d+)?)?|` + spoken + `)\s*(Z|UTC|GMT|KST|[+-]\d{2}:?\d{2})?)?`)
	dotDate    = regexp.MustCompile(`\b((?:19|20)\d{2})[./]\s?(\d{1,2})[./]\s?(\d{1,2})\.?` + clock)
	cjkDate    = regexp.MustCompile(`((?:19|20)\d{2})\s?[년年]\s?(\d{1,2})\s?[월月]\s?(\d{1,2})\s?[일日]` + clock)
	shortYear  = regexp.MustCompile(`(?:^|[^\w./-])(\d{2})[./-]\s?(\d{1,2})[./-]\s?(\d{1,2})\.?[^\d\n]{1,12}?(\d{1,2}):(\d{2})(?::(\d{2}))?`)
	dayFirst   = regexp.MustCompile(`(?i)\b(\d{1,2})(\.|:?\p{L}{1,2}|[°º]\.?)?,?[\s-]+(?:de\s+|of\s+|d[’']|ta[’']\s?)?` + monthName + `[,،]?[\s-]+(?:del?\s+|พ\.ศ\.\s*|ค\.ศ\.\s*)?((?:19|20|25)\d{2})(?:[^\d\n]{1,12}?(\d{1,2})[:.h](\d{2}))?`)
	monthFirst = regexp.MustCompile(`(?i)(?:^|[^\p{L}\p{M}])` + monthName + `[\s-]+(\d{1,2})(?:st|nd|rd|th)?,?[\s-]+((?:19|20)\d{2})(?:[^\d\n]{1,12}?(\d{1,2}):(\d{2})\s*([ap]\.?m)?)?`)
	// yearName has a month's name after the year and the day before or after the name: 2024. május 3., 2024. gada 3. maijs.
	yearName   = regexp.MustCompile(`(?i)\b((?:19|20)\d{2})\.?(?:\s+\p{L}{1,4}\.?)?,?\s+(?:(\d{1,2})\.?\s+)?` + monthName + `(?:\s+(\d{1,2})\b)?(?:[^\d\n]{1,12}?(\d{1,2})[:.](\d{2}))?`)
	vietnamese = regexp.MustCompile(`(?i)\b(\d{1,2})\s+(?:tháng|thg)\s+(\d{1,2}),?\s+(?:năm\s+)?((?:19|20)\d{2})(?:[^\d\n]{1,12}?(\d{1,2})[:.h](\d{2}))?`)
	euroDate   = regexp.MustCompile(`\b(\d{1,2})\s?[./|-]\s?(\d{1,2})\s?[./|-]\s?((?:19|20|25)\d{2})(?:[^\d\n]{1,12}?(\d{1,2})[:.](\d{2}))?`)
	shortDate  = regexp.MustCompile(`(?:^|[^\w./-])(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{2})\.?(?:$|[^\w.])`)
	compact    = regexp.MustCompile(`^((?:19|20)\d{2})(\d{2})(\d{2})(?:T?(\d{2})(\d{2})(\d{2})?)?(Z|[+-]\d{4})?$`)
	unixTime   = regexp.MustCompile(`^1\d{9}(\d{3})?$`)
)

// ParseTime reads a time in one of the forms that news pages use. A year of two
// digits counts at the beginning, as in East Asia, with a time of day, and at the
// end of three numbers with dots, in a short text. A time without an offset is in zone. ok is false for anything else.
func ParseTime(s string, zone *time.Location) (t time.Time, ok bool) {
	return calendar{Location: zone}.parse(s)
}

// parse is ParseTime for a page's texts.
func (c calendar) parse(s string) (t time.Time, ok bool) {
	zone := c.Location
	s = strings.TrimSpace(s)
	if len(s) < 8 {
		return time.Time{}, false
	}
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "")
	}
	if strings.ContainsFunc(s, beyondASCII) {
		if s = otherYears(s); strings.ContainsFunc(s, persian) {
			if t, ok := solarHijri(strings.Map(plainTime, s), zone); ok {
				return t, true
			}
		}
		s = arabicMonths.Replace(strings.Map(plainTime, s))
	}
	if !strings.ContainsAny(s, "12") { // a year has one of them
		return time.Time{}, false
	}
	if t, ok, is := machineTime(s, zone); is {
		return t, ok
	}
	dash, dot := strings.IndexByte(s, '-') >= 0, strings.ContainsAny(s, "./")
	year := strings.Contains(s, "20") || strings.Contains(s, "19") || strings.Contains(s, "25") && strings.ContainsFunc(s, thai)
	if m, near := findIf(year && dash, isoDate, s); m != nil {
		return date(m[1], m[2], m[3], m[4], cmp.Or(m[5], m[7]), m[6], m[8], half(near), zone)
	}
	m, near := findIf(year && strings.ContainsAny(s, "월月"), cjkDate, s)
	if m == nil {
		m, near = findIf(year && dot, dotDate, s)
	}
	if m != nil {
		return date(m[1], m[2], m[3], m[4], cmp.Or(m[5], m[7]), m[6], "", half(near), zone)
	}
	if year {
		if t, ok, is := byName(s, zone); is {
			return t, ok
		}
	}
	if m, near := findIf(year || zone.String() == bangkok, euroDate, s); m != nil {
		day, mon, offset := m[1], m[2], ""
		name := american.FindString(s)
		if c.isMonthFirst(m, name != "") {
			day, mon = mon, day
		}
		if strings.Contains(m[0], ":") {
			offset = name
		}
		return date(buddhist(m[3], s, zone), mon, day, m[4], m[5], "", offset, half(near), zone)
	}
	if m, near := findIf(dash || dot, shortYear, s); m != nil && yearFirst(s, zone) {
		return date("20"+m[1], m[2], m[3], m[4], m[5], m[6], "", half(near), zone)
	}
	if m := shortDate.FindStringSubmatch(s); dot && m != nil && len(s) <= 40 && !strings.Contains(s, ":") && !yearFirst(s, zone) {
		return date("20"+m[3], m[2], m[1], "", "", "", "", "", zone)
	}
	return time.Time{}, false
}

// machineTime reads a time as programs write it; is is false for other texts.
func machineTime(s string, zone *time.Location) (t time.Time, ok, is bool) {
	if strings.IndexByte(s, ':') >= 0 {
		for _, layout := range []string{time.RFC3339Nano, time.RFC1123Z, time.RFC1123, time.RFC850, "Mon, 2 Jan 2006 15:04:05 -0700", "Mon Jan 2 15:04:05 MST 2006", "Mon Jan 02 2006 15:04:05 GMT-0700"} {
			if t, err := time.Parse(layout, s); err == nil {
				if name, offset := t.Zone(); offset == 0 && name != "" {
					t = inNamed(t, name, zone)
				}
				return t, plausible(t), true
			}
		}
	}
	if unixTime.MatchString(s) {
		n, err := strconv.ParseInt(s[:10], 10, 64)
		t = time.Unix(n, 0).UTC()
		return t, err == nil && plausible(t), true
	}
	if m := compact.FindStringSubmatch(s); m != nil {
		t, ok = date(m[1], m[2], m[3], m[4], m[5], m[6], m[7], "", zone)
		return t, ok, true
	}
	return time.Time{}, false, false
}

// inNamed returns the time of day of t, which is in UTC, in the zone of a name: that of
// the publisher's own zone, or the usual one. A name that neither has means UTC.
func inNamed(t time.Time, name string, zone *time.Location) time.Time {
	const layout = "2006-01-02T15:04:05 MST"
	if own, err := time.ParseInLocation(layout, t.Format("2006-01-02T15:04:05 ")+name, zone); err == nil {
		if _, offset := own.Zone(); offset != 0 {
			return own
		}
	}
	seconds, _ := zonename.Seconds(name)
	return t.Add(-time.Duration(seconds) * time.Second)
}

// byName is the day of a text that has a month by its name. is is not set for a text without one.
func byName(s string, zone *time.Location) (t time.Time, ok, is bool) {
	if m, near := find(dayFirst, s, 3); m != nil {
		year, mon := buddhist(m[4], m[3], zone), month(m[3])
		if m[2] == "." && strings.EqualFold(m[3], "listopada") { // October in Croatian, which has a full stop after the day; November in Polish
			mon = "10"
		}
		t, ok = date(year, mon, m[1], m[5], m[6], "", "", half(near), zone)
		return t, ok, true
	}
	if m, near := find(monthFirst, s, 1); m != nil {
		t, ok = date(m[3], month(m[1]), m[2], m[4], m[5], "", "", half(near), zone)
		return t, ok, true
	}
	if m, near := find(yearName, s, 3); m != nil && (m[2] == "") != (m[4] == "") {
		t, ok = date(m[1], month(m[3]), m[2]+m[4], m[5], m[6], "", "", half(near), zone)
		return t, ok, true
	}
	if m, near := find(vietnamese, s, 0); m != nil {
		t, ok = date(m[3], m[2], m[1], m[4], m[5], "", "", half(near), zone)
		return t, ok, true
	}
	return time.Time{}, false, false
}

// find returns the first match of a form, of those with a month's name in a group the first whose name is known,
// and the match with a following word for the half of the day.
func find(form *regexp.Regexp, s string, name int) (m []string, near string) {
	const most = 4 // matches
	for _, at := range form.FindAllStringSubmatchIndex(s, most) {
		m = m[:0]
		for i := 0; i < len(at); i += 2 {
			if at[i] < 0 {
				m = append(m, "")
				continue
			}
			m = append(m, s[at[i]:at[i+1]])
		}
		if name == 0 || month(m[name]) != "" {
			return m, s[at[0]:min(at[1]+len(" 오후"), len(s))]
		}
	}
	return nil, ""
}

// plainTime writes digits of all scripts as those of ASCII, and spaces as one; it is for strings.Map.
func plainTime(c rune) rune {
	switch {
	case c < utf8.RuneSelf:
		return c
	case c == '\u00a0' || c == '\u2009' || c == '\u202f':
		return ' '
	case unicode.Is(unicode.Nd, c):
		for _, zero := range zeros {
			if d := c - zero; d >= 0 && d < 10 {
				return '0' + d
			}
		}
	}
	return dropInvisible(c)
}

// zeros are those of other scripts: Arabic to Malayalam, Thai, Lao, Burmese, Khmer, wide.
var zeros = []rune{0x660, 0x6f0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xe50, 0xed0, 0x1040, 0x17e0, 0xff10}

// arabicMonths has the names of two words that the Levant and Iraq have for months.
var arabicMonths = strings.NewReplacer("كانون الثاني", "يناير", "تشرين الأول", "أكتوبر", "تشرين الاول", "أكتوبر", "تشرين الثاني", "نوفمبر", "كانون الأول", "ديسمبر", "كانون الاول", "ديسمبر")

func thai(c rune) bool { return 0x0e00 <= c && c <= 0x0e7f }

// findIf is find for a text that has the marks that the form needs: most have none.
func findIf(may bool, form *regexp.Regexp, s string) (m []string, near string) {
	if !may {
		return nil, ""
	}
	return find(form, s, 0)
}

// yearFirst reports whether a date of three short numbers begins with the year,
// as in East Asia.
func yearFirst(s string, zone *time.Location) bool {
	switch zone.String() {
	case "KST", "JST", "Asia/Seoul", "Asia/Pyongyang", "Asia/Tokyo", "Asia/Shanghai", "Asia/Taipei", "Asia/Hong_Kong":
		return true
	}
	return strings.ContainsFunc(s, hangul)
}

// half is "pm" or "am" where a text says which half of the day it means.
func half(s string) string {
	low := strings.ToLower(s)
	switch {
	case strings.Contains(s, "오후"), strings.Contains(s, "낮"), strings.Contains(s, "저녁"), strings.Contains(s, "밤"), strings.Contains(s, "午後"), strings.Contains(low, " pm"), strings.Contains(low, " p.m"), afternoon.MatchString(low):
		return "pm"
	case strings.Contains(s, "오전"), strings.Contains(s, "새벽"), strings.Contains(s, "아침"), strings.Contains(s, "午前"), strings.Contains(low, " am"), strings.Contains(low, " a.m"):
		return "am"
	}
	return ""
}

var afternoon = regexp.MustCompile(`\dpm\b`)

func date(year, month, day, hour, minute, second, offset, half string, zone *time.Location) (time.Time, bool) {
	var n [6]int
	for i, s := range []string{year, month, day, hour, minute, second} {
		if s == "" {
			continue
		}
		v, err := strconv.Atoi(s)
		if err != nil {
			return time.Time{}, false
		}
		n[i] = v
	}
	if half == "pm" && n[3] < 12 && hour != "" {
		n[3] += 12
	}
	if half == "am" && n[3] == 12 {
		n[3] = 0
	}
	if n[1] < 1 || n[1] > 12 || n[2] < 1 || n[2] > 31 || n[3] > 23 || n[4] > 59 || n[5] > 60 {
		return time.Time{}, false
	}
	switch offset {
	case "":
	case "Z", "UTC", "GMT":
		zone = time.UTC
	case "KST":
		zone = time.FixedZone("KST", 9*3600)
	default:
		if seconds, ok := zonename.Seconds(offset); ok {
			zone = time.FixedZone(offset, seconds)
		} else if o, err := time.Parse("-0700", strings.Replace(offset, ":", "", 1)); err == nil {
			zone = o.Location()
		}
	}
	t := time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], 0, zone)
	return t, t.Day() == n[2] && plausible(t)
}

// plausible rejects the zero times of content systems and typing errors.
func plausible(t time.Time) bool { return t.Year() >= 1980 && t.Year() < 2100 }
