package value

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// order is the order of day, month and year in a date of digits.
type order int

const (
	unknownOrder order = iota
	dayFirst
	monthFirst
	yearFirst
)

// orderOf returns the order in short dates, by CLDR.
func orderOf(base, region string) order {
	switch region {
	case "US", "PH", "PW", "GU", "PR":
		return monthFirst
	case "KR", "KP", "JP", "CN", "TW", "HU", "LT", "MN", "IR":
		return yearFirst
	case "CA":
		return unknownOrder // all three are in use
	}
	if base == "ko" || base == "ja" || base == "zh" {
		return yearFirst
	}
	return dayFirst
}

var (
	yearLeads  = regexp.MustCompile(`(?:^|[^\d])(\d{4})\s*[-./年년]\s*(\d{1,2})\s*[-./月월]\s*(\d{1,2})(?:[^\d]|$)`)
	shortYear  = regexp.MustCompile(`(?:^|[^\d])(\d{2})\s*[-./年년]\s*(\d{1,2})\s*[-./月월]\s*(\d{1,2})(?:[^\d]|$)`)
	yearEnds   = regexp.MustCompile(`(?:^|[^\d])(\d{1,2})\s?([-./])\s?(\d{1,2})\s?[-./]\s?(\d{4}|\d{2})(?:[^\d]|$)`)
	dayAndWord = regexp.MustCompile(`(?:^|[^\d\pL])(\d{1,2})(?:st|nd|rd|th|er|º|ª|\.)?[\s-]*(?:de |of )?(\pL[\pL\pM]*(?:\.[\pL\pM]+)?)[.,]?[\s-]*(?:de |del |(?:พ|ค)\.ศ\. ?|พุทธศักราช ?|คริสต์ศักราช ?)?(\d{4})(?:[^\d]|$)`)
	wordAndDay = regexp.MustCompile(`(?:^|[^\pL])(\pL+)\.?\s*(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})(?:[^\d]|$)`)
)

// eras matches a year of an era, in Japanese also by its short name. The year 1 of eraBegins is the year after its number.
var (
	eras      = regexp.MustCompile(`(令和?|平成?|昭和?|大正|明治|民國|民国|\b[RHSTM])\.?\s*(\d{1,3}|元)\s*(年|[./-])`)
	eraBegins = map[string]int{"令和": 2018, "令": 2018, "R": 2018, "平成": 1988, "平": 1988, "H": 1988, "昭和": 1925, "昭": 1925, "S": 1925,
		"大正": 1911, "T": 1911, "明治": 1867, "M": 1867, "民國": 1911, "民国": 1911}
	kanji   = regexp.MustCompile(`[〇零一二三四五六七八九十]+\s*[年月日]`)
	ofKanji = strings.NewReplacer("〇", "0", "零", "0", "一", "1", "二", "2", "三", "3", "四", "4", "五", "5", "六", "6", "七", "7", "八", "8", "九", "9")
)

// westernYears writes the years of eras as those of the common era, and the numbers of a date in kanji as digits.
func westernYears(s string, l Locale) string {
	s = kanji.ReplaceAllStringFunc(s, func(number string) string {
		tens, ones, ten := strings.Cut(ofKanji.Replace(number), "十")
		if !ten {
			return tens
		}
		if tens == "" {
			tens = "1"
		}
		if ones[0] < '0' || ones[0] > '9' {
			tens += "0"
		}
		return tens + ones
	})
	return eras.ReplaceAllStringFunc(s, func(whole string) string {
		m := eras.FindStringSubmatch(whole)
		if long := len([]rune(m[1])) > 1; (!long || m[3] != "年") && l.months != "ja" {
			return whole
		}
		year, _ := strconv.Atoi(strings.ReplaceAll(m[2], "元", "1"))
		return strconv.Itoa(eraBegins[m[1]]+year) + "年"
	})
}

// Date reads the only date in a text and returns it as YYYY-MM-DD. A time with an
// offset from UTC is converted to its day in zone, if zone is not nil.
func Date(text string, l Locale, zone *time.Location) (string, error) {
	s := strings.ReplaceAll(strings.TrimSpace(digits(text)), " "+string(Apart), " ")
	if strings.ContainsAny(s, string(Apart)+string(Raised)) {
		return "", fmt.Errorf("%q has digits of several elements side by side: choose one element by the selector", text)
	}
	if t, ok := instant(s, l, zone); ok {
		return t.Format(time.DateOnly), nil
	}
	all, err := dates(s, l)
	if err != nil {
		return "", fmt.Errorf("%q: %w", text, err)
	}
	slices.Sort(all)
	switch all = slices.Compact(all); len(all) {
	case 0:
		return "", fmt.Errorf("%q has no date", text)
	case 1:
		return all[0], nil
	}
	return "", fmt.Errorf("%q has several dates: choose one by a regexp", text)
}

func dates(s string, l Locale) (all []string, err error) {
	add := func(year, month, day int) {
		year -= l.buddhist(year)
		t := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
		if t.Year() != year || int(t.Month()) != month || t.Day() != day {
			err = errors.New("there is no such day")
			return
		}
		all = append(all, t.Format(time.DateOnly))
	}
	s = westernYears(s, l)
	// each form is searched in the text that the forms before it did not match
	take := func(form *regexp.Regexp, read func(m []string) bool) {
		s = form.ReplaceAllStringFunc(s, func(whole string) string {
			if read(form.FindStringSubmatch(whole)) {
				return " | "
			}
			return whole
		})
	}
	take(yearLeads, func(m []string) bool {
		add(number3(m[1], m[2], m[3]))
		return true
	})
	if strings.ContainsFunc(s, unicode.IsLetter) {
		named := func(year, name, day int) func(m []string) bool { // by their groups in the form
			return func(m []string) bool {
				month := monthOf(m[name], l.months)
				if month > 0 {
					y, _, d := number3(m[year], "0", m[day])
					add(y, month, d)
				}
				return month > 0
			}
		}
		take(dayAndWord, named(3, 2, 1))
		take(wordAndDay, named(3, 1, 2))
	}
	if l.order == yearFirst || strings.ContainsAny(s, "년年") {
		take(shortYear, func(m []string) bool {
			y, month, d := number3(m[1], m[2], m[3])
			add(2000+y, month, d)
			return true
		})
	}
	take(yearEnds, func(m []string) bool {
		year, a, b := number3(m[4], m[1], m[3])
		if len(m[4]) == 2 {
			year += 2000
			if l.order == unknownOrder || l.months == "th" {
				err = errors.New("its year has two digits: set the site's or the field's locale")
				return true
			}
		}
		switch order := l.order; {
		case order == monthFirst:
			add(year, a, b)
		case order != unknownOrder, m[2] == ".", a > 12:
			add(year, b, a)
		case b > 12:
			add(year, a, b)
		case a == b:
			add(year, a, b)
		default:
			err = fmt.Errorf("it may be the %d.%d. or the %d.%d. (day.month.): set the site's or the field's locale", a, b, b, a)
		}
		return true
	})
	return all, err
}

// buddhist is how many years a year of the Buddhist calendar is ahead, 0 for another one.
func (l Locale) buddhist(year int) int {
	if l.months == "th" && year > 2400 {
		return 543
	}
	return 0
}

// number3 returns the numbers of three texts of digits.
func number3(a, b, c string) (x, y, z int) {
	x, _ = strconv.Atoi(a) // at most four digits
	y, _ = strconv.Atoi(b)
	z, _ = strconv.Atoi(c)
	return x, y, z
}

// monthOf returns the month of a name in English or in the language, 0 for none.
func monthOf(name, lang string) int {
	name = strings.ToLower(name)
	for _, lang := range []string{"en", lang} {
		for i, names := range strings.Fields(months[lang]) {
			for full := range strings.SplitSeq(names, "/") {
				short := []rune(full)
				if name == full || len(short) > 3 && strings.HasPrefix(full, name) && len([]rune(name)) >= 3 {
					return i + 1
				}
			}
		}
	}
	return 0
}

// months are the names of the months by language; a short form is the beginning of a name.
var months = map[string]string{
	"en": "january february march april may june july august september/sept october november december",
	"de": "januar/jänner februar/feber märz/mrz april mai juni juli august september/sept oktober november dezember",
	"fr": "janvier février/fevrier mars avril mai juin juillet août/aout septembre octobre novembre décembre/decembre",
	"es": "enero febrero marzo abril mayo junio julio agosto septiembre/setiembre octubre noviembre diciembre",
	"it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
	"pt": "janeiro fevereiro março/marco abril maio junho julho agosto setembro outubro novembro dezembro",
	"nl": "januari februari maart/mrt april mei juni juli augustus september oktober november december",
	"sv": "januari februari mars april maj juni juli augusti september oktober november december",
	"nb": "januar februar mars april mai juni juli august september oktober november desember",
	"no": "januar februar mars april mai juni juli august september oktober november desember",
	"da": "januar februar marts april maj juni juli august september oktober november december",
	"fi": "tammikuuta/tammikuu helmikuuta/helmikuu maaliskuuta/maaliskuu huhtikuuta/huhtikuu toukokuuta/toukokuu kesäkuuta/kesäkuu heinäkuuta/heinäkuu elokuuta/elokuu syyskuuta/syyskuu lokakuuta/lokakuu marraskuuta/marraskuu joulukuuta/joulukuu",
	"pl": "stycznia/styczeń lutego/luty marca/marzec kwietnia/kwiecień maja/maj czerwca/czerwiec lipca/lipiec sierpnia/sierpień września/wrzesień października/październik listopada/listopad grudnia/grudzień",
	"cs": "ledna/leden února/únor března/březen dubna/duben května/květen června/červen července/červenec srpna/srpen září října/říjen listopadu/listopad prosince/prosinec",
	"tr": "ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık",
	"ru": "января/январь февраля/февраль марта/март апреля/апрель мая/май июня/июнь июля/июль августа/август сентября/сентябрь октября/октябрь ноября/ноябрь декабря/декабрь",
	"uk": "січня/січень лютого/лютий березня/березень квітня/квітень травня/травень червня/червень липня/липень серпня/серпень вересня/вересень жовтня/жовтень листопада/листопад грудня/грудень",
	"th": "มกราคม/ม.ค กุมภาพันธ์/ก.พ มีนาคม/มี.ค เมษายน/เม.ย พฤษภาคม/พ.ค มิถุนายน/มิ.ย กรกฎาคม/ก.ค สิงหาคม/ส.ค กันยายน/ก.ย ตุลาคม/ต.ค พฤศจิกายน/พ.ย ธันวาคม/ธ.ค",
	"id": "januari februari maret april mei juni juli agustus september oktober november desember",
}
