package article

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// months are the names of months by their first letters, as many as tell them from those of the other
// months in all languages here: of Europe, of West, Central and South Asia, Thai, Filipino. Where two
// languages have one name for different months, that of the larger one counts.
var months = monthNames([12]string{
	`jan jän jaan jān ene gen ian ledna leden oca sausi sije sty tam xane yan ιαν янв січ сту јан яну қаң հնվ հունվ ינו ינא ينا جنو جان يناير ژان जन जान জান ਜਨ જાન ஜன జన ಜನ ജനു ม.ค มกร იან`,
	`feb fev fra fév hel lut pebr shk úno vasar veeb velj şub φεβ фев феб лют ақп փետ פבר فبر فيف شبا فرو فور फ़र फर फेब ফেব ਫ਼ਰ ਫਰ ફેબ பிப ఫిబ ಫೆಬ ഫെബ ก.พ กุม თებ`,
	`mar mär maa már març bře kovo mrt mäe machi ožu μαρ μάρ мар бер нау сак մար מרץ مار آذا मार মার ਮਾਰ માર மார మార ಮಾರ മാർ มี.ค มีน მარ`,
	`apr avr abr ápr baland dubn dube huh kwi nis pril trav απρ апр кві кра сәу ապր אפר أبر ابر آور اپر أفر نيس अप् एप् এপ্ ਅਪ੍ એપ્ ஏப் ఏప్ ಏಪ್ ഏപ് เม.ย เมษ აპრ`,
	`may mej mai maj mag mei maí máj geg kvě svib tou μαΐ μάι μαι мая май мај мам тра մայ մյս מאי ماي ميه أيا مئی مه मई मे মে ਮਈ મે மே మే ಮೇ മേയ് മേയ พ.ค พฤษภ მაი`,
	`jun ġun jún jūn juun juin giu haz birž cze červen červn huny iun iyun kes lipn lipa qer xuñ ιουν ιούν июн юни јун мау чер чэр հնս հունի יונ يون جون حزي ژوئن जून जुन জুন ਜੂਨ જૂન ஜூன జూన ಜೂನ ജൂൺ มิ.ย มิถ ივნ جوان`,
	`jul lul júl jūl juul huly juil lug tem hei iul iyul korr liep lip červenc srpnj srpa xul ιουλ ιούλ июл юли јул лип ліп шіл հլս հուլ יול يول تمو جول ژوئی जुल জুল ਜੁਲ જુલ ஜூல జుల ಜುಲ ജൂല ก.ค กรก ივლ جوي`,
	`aug aww avg ago aoû agu ağu ágú avq elo gush kolov rugp sie srp αυγ αύγ авг жні сер там օգս օգո אוג أغس اغس أوت آب اگس اوت अग ऑग আগ ਅਗ ઑગ ஆக ఆగ ಆಗ ഓഗ ส.ค สิง აგვ`,
	`sep set senta senty sht eyl rujn rugs syy sze wrz zář σεπ сен сеп вер қыр սեպ ספט سبت أيل ستم सित सप् सेप সেপ ਸਤੰ સપ્ செப సెప ಸೆಪ സെപ ก.ย กัน სექ سپت`,
	`oct okt ott out eki lok paź říj spali teto οκτ окт жов кас қаз հոկ אוק أكت اكت أوک अक् अक्टू ऑक् অক্ ਅਕਤ ઑક્ ஒக் அக் అక్ ಅಕ್ ഒക് ต.ค ตุล ოქტ اکت`,
	`nov noi nobe noya nën nóv kas lapkr lis marr studeno studeni νοε νοέ ноя нов ное ліс лис қар նոյ נוב نوف نوم نوا नव नोभ नोव নভে ਨਵੰ નવે நவ నవం ನವೆ നവം พ.ย พฤศ ნოე`,
	`dec dez diċ des déc dic dek det dhj dis ara gru jou pros δεκ дек дец гру сне жел դեկ דצמ ديس دسم دسا डिस दिस ডিস ਦਸੰ ડિસ டிச డిసె డిస ಡಿಸ ഡിസ ธ.ค ธัน დეკ`,
})

// mostLetters is how many letters a name has in months.
const mostLetters = 8

func monthNames(lists [12]string) map[string]string {
	all := map[string]string{}
	for i, list := range lists {
		for name := range strings.FieldsSeq(list) {
			all[name] = strconv.Itoa(i + 1)
		}
	}
	return all
}

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
