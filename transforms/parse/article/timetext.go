package article

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The time of a day after a date, with numbers for hour, minute, second and the
// minute of the spoken form: 13:05:00, 1시 5분, 1시.
const (
	spoken = `\s?[시時](?:\s?(\d{1,2})\s?[분分]|[^가-힣\d]|$)`
	clock  = `(?:[^\d\n]{0,12}?(\d{1,2})(?::(\d{2})(?::(\d{2}))?|` + spoken + `))?`
)

var (
	isoDate    = regexp.MustCompile(`\b((?:19|20)\d{2})-(\d{1,2})-(\d{1,2})(?:[^\d\n]{1,12}?(\d{1,2})(?::(\d{2})(?::(\d{2})(?:[.,]\d+)?)?|` + spoken + `)\s*(Z|UTC|GMT|KST|[+-]\d{2}:?\d{2})?)?`)
	dotDate    = regexp.MustCompile(`\b((?:19|20)\d{2})[./]\s?(\d{1,2})[./]\s?(\d{1,2})\.?` + clock)
	cjkDate    = regexp.MustCompile(`((?:19|20)\d{2})\s?[년年]\s?(\d{1,2})\s?[월月]\s?(\d{1,2})\s?[일日]` + clock)
	shortYear  = regexp.MustCompile(`(?:^|[^\w./-])(\d{2})[./-]\s?(\d{1,2})[./-]\s?(\d{1,2})\.?[^\d\n]{1,12}?(\d{1,2}):(\d{2})(?::(\d{2}))?`)
	dayFirst   = regexp.MustCompile(`(?i)\b(\d{1,2})(?:st|nd|rd|th|\.)?\s+(?:de\s+)?([\p{L}]{3,})\.?,?\s+(?:de\s+)?((?:19|20)\d{2})(?:[^\d\n]{1,12}?(\d{1,2})[:.h](\d{2}))?`)
	monthFirst = regexp.MustCompile(`(?i)\b([\p{L}]{3,})\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+((?:19|20)\d{2})(?:[^\d\n]{1,12}?(\d{1,2}):(\d{2})\s*([ap]\.?m)?)?`)
	euroDate   = regexp.MustCompile(`\b(\d{1,2})\s?[./|-]\s?(\d{1,2})\s?[./|-]\s?((?:19|20)\d{2})(?:[^\d\n]{1,12}?(\d{1,2})[:.](\d{2}))?`)
	shortDate  = regexp.MustCompile(`(?:^|[^\w./-])(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{2})\.?(?:$|[^\w.])`)
	compact    = regexp.MustCompile(`^((?:19|20)\d{2})(\d{2})(\d{2})(?:T?(\d{2})(\d{2})(\d{2})?)?(Z|[+-]\d{4})?$`)
	unixTime   = regexp.MustCompile(`^1\d{9}(\d{3})?$`)
)

// ParseTime reads a time in one of the forms that news pages use. A year of two
// digits counts at the beginning, as in East Asia, with a time of day, and at the
// end of three numbers with dots, in a short text. A time without an offset is in zone. ok is false for anything else.
func ParseTime(s string, zone *time.Location) (t time.Time, ok bool) {
	s = strings.TrimSpace(s)
	if len(s) < 8 {
		return time.Time{}, false
	}
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "")
	}
	s = strings.ReplaceAll(s, "\u00a0", " ")
	if strings.Contains(s, "\u2009") || strings.Contains(s, "\u202f") {
		s = strings.NewReplacer("\u2009", " ", "\u202f", " ").Replace(s)
	}
	if !strings.ContainsAny(s, "12") { // a year has one of them
		return time.Time{}, false
	}
	if strings.IndexByte(s, ':') >= 0 {
		for _, layout := range []string{time.RFC3339Nano, time.RFC1123Z, time.RFC1123, time.RFC850, "Mon, 2 Jan 2006 15:04:05 -0700", "Mon Jan 2 15:04:05 MST 2006", "Mon Jan 02 2006 15:04:05 GMT-0700"} {
			if t, err := time.Parse(layout, s); err == nil {
				if zone, offset := t.Zone(); offset == 0 && zone == "KST" { // a name alone has no offset
					t = t.Add(-9 * time.Hour)
				}
				return t, plausible(t)
			}
		}
	}
	if unixTime.MatchString(s) {
		n, err := strconv.ParseInt(s[:10], 10, 64)
		t = time.Unix(n, 0).UTC()
		return t, err == nil && plausible(t)
	}
	if m := compact.FindStringSubmatch(s); m != nil {
		return date(m[1], m[2], m[3], m[4], m[5], m[6], m[7], "", zone)
	}
	dash, dot := strings.IndexByte(s, '-') >= 0, strings.ContainsAny(s, "./")
	year := strings.Contains(s, "20") || strings.Contains(s, "19")
	if m, near := find(isoDate, s, year && dash); m != nil {
		return date(m[1], m[2], m[3], m[4], cmp.Or(m[5], m[7]), m[6], m[8], half(near), zone)
	}
	m, near := find(cjkDate, s, year && strings.ContainsAny(s, "월月"))
	if m == nil {
		m, near = find(dotDate, s, year && dot)
	}
	if m != nil {
		return date(m[1], m[2], m[3], m[4], cmp.Or(m[5], m[7]), m[6], "", half(near), zone)
	}
	if m, near := find(dayFirst, s, year); m != nil && month(m[2]) != "" {
		return date(m[3], month(m[2]), m[1], m[4], m[5], "", "", half(near), zone)
	}
	if m, near := find(monthFirst, s, year); m != nil && month(m[1]) != "" {
		return date(m[3], month(m[1]), m[2], m[4], m[5], "", "", half(near), zone)
	}
	if m, near := find(euroDate, s, year); m != nil {
		day, mon := m[1], m[2]
		if n, _ := strconv.Atoi(mon); n > 12 { // month first
			day, mon = mon, day
		}
		return date(m[3], mon, day, m[4], m[5], "", "", half(near), zone)
	}
	if m, near := find(shortYear, s, dash || dot); m != nil && yearFirst(s, zone) {
		return date("20"+m[1], m[2], m[3], m[4], m[5], m[6], "", half(near), zone)
	}
	if m := shortDate.FindStringSubmatch(s); dot && m != nil && len(s) <= 40 && !strings.Contains(s, ":") && !yearFirst(s, zone) {
		return date("20"+m[3], m[2], m[1], "", "", "", "", "", zone)
	}
	return time.Time{}, false
}

// find returns the first match of a form, and the match with a following word for the
// half of the day. may is not set where a text lacks a mark that the form has.
func find(form *regexp.Regexp, s string, may bool) (m []string, near string) {
	if !may {
		return nil, ""
	}
	at := form.FindStringSubmatchIndex(s)
	if at == nil {
		return nil, ""
	}
	for i := 0; i < len(at); i += 2 {
		if at[i] < 0 {
			m = append(m, "")
			continue
		}
		m = append(m, s[at[i]:at[i+1]])
	}
	return m, s[at[0]:min(at[1]+len(" 오후"), len(s))]
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
		if o, err := time.Parse("-0700", strings.Replace(offset, ":", "", 1)); err == nil {
			zone = o.Location()
		}
	}
	t := time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], 0, zone)
	return t, t.Day() == n[2] && plausible(t)
}

// plausible rejects the zero times of content systems and typing errors.
func plausible(t time.Time) bool { return t.Year() >= 1980 && t.Year() < 2100 }

// months are the names of months by their first letters, in the languages that
// the cases of news pages have most.
var months = map[string]string{
	"jan": "1", "feb": "2", "mar": "3", "apr": "4", "may": "5", "jun": "6", "jul": "7", "aug": "8", "sep": "9", "oct": "10", "nov": "11", "dec": "12",
	"mär": "3", "mai": "5", "okt": "10", "dez": "12", "ene": "1", "abr": "4", "ago": "8", "dic": "12", "fév": "2", "avr": "4", "jui": "", "aoû": "8", "déc": "12",
	"gen": "1", "mag": "5", "giu": "6", "lug": "7", "set": "9", "ott": "10", "fev": "2", "out": "10", "maj": "5", "des": "12", "mei": "5", "agu": "8",
	"jän": "1", "juin": "6", "juil": "7", "янв": "1", "фев": "2", "мар": "3", "апр": "4", "мая": "5", "июн": "6", "июл": "7", "авг": "8", "сен": "9", "окт": "10", "ноя": "11", "дек": "12",
	"oca": "1", "şub": "2", "nis": "4", "haz": "6", "tem": "7", "ağu": "8", "eyl": "9", "eki": "10", "kas": "11", "ara": "12",
	"sty": "1", "lut": "2", "kwi": "4", "cze": "6", "lip": "7", "sie": "8", "wrz": "9", "paź": "10", "lis": "11", "gru": "12",
	"tam": "1", "hel": "2", "maa": "3", "huh": "4", "tou": "5", "kes": "6", "hei": "7", "elo": "8", "syy": "9", "lok": "10", "marr": "11", "jou": "12",
	"ιαν": "1", "φεβ": "2", "μαρ": "3", "απρ": "4", "μαΐ": "5", "μαι": "5", "ιουν": "6", "ιουλ": "7", "αυγ": "8", "σεπ": "9", "οκτ": "10", "νοε": "11", "δεκ": "12",
	"січ": "1", "лют": "2", "бер": "3", "кві": "4", "тра": "5", "чер": "6", "лип": "7", "сер": "8", "вер": "9", "жов": "10", "лис": "11", "гру": "12",
	"јан": "1", "мај": "5", "јун": "6", "јул": "7", "яну": "1", "май": "5", "юни": "6", "юли": "7", "сеп": "9", "ное": "11", "ian": "1", "iun": "6", "iul": "7", "noi": "11",
	"ينا": "1", "فبر": "2", "مار": "3", "أبر": "4", "ابر": "4", "ماي": "5", "يون": "6", "يول": "7", "أغس": "8", "اغس": "8", "سبت": "9", "أكت": "10", "اكت": "10", "نوف": "11", "ديس": "12",
}

func month(name string) string {
	r := []rune(strings.ToLower(name))
	if len(r) >= 4 {
		if m := months[string(r[:4])]; m != "" {
			return m
		}
	}
	if len(r) < 3 {
		return ""
	}
	return months[string(r[:3])]
}
