package answer

import (
	"regexp"
	"sync"
)

// maxSentence is the most characters of a title or heading that says that a page is missing.
const maxSentence = 70

// missing finds the sentence that a page is missing in languages other than English: a word for a page and, in the same
// sentence, words for its absence. English has too many titles about such sentences, and is in wallPhrases word for word.
var missing = sync.OnceValue(func() *regexp.Regexp {
	pairs := []string{
		`(?:페이지|문서|기사|게시물|상품|주소).{0,30}(?:찾을 수 없|존재하지 않|없습니다|삭제되)`, `(?:존재하지 않는|삭제된|없는) (?:페이지|문서|기사|게시물|상품)`,
		`(?:ページ|記事|商品|ファイル|url).{0,30}(?:見つかりません|見つかりませんでした|存在しません|存在しない|ありません|削除され)`,
		`(?:页面|页|頁面|網頁|网页|文章|内容|商品).{0,20}(?:不存在|未找到|没有找到|找不到|沒有找到|已删除|已刪除)`, `(?:找不到|未找到|没有找到).{0,12}(?:页面|頁面|網頁|网页|文章)`,
		`(?:seite|artikel|datei).{0,40}(?:nicht gefunden|existiert (?:leider )?nicht|nicht (?:mehr )?(?:verfügbar|vorhanden)|nicht finden)`,
		`(?:page|article|fichier).{0,40}(?:n'existe (?:pas|plus)|introuvable|non trouvée?|n'est (?:pas|plus) disponible|pas été trouvée?)`,
		`(?:página|artículo|archivo|artigo|ficheiro|pagina|articolo).{0,40}(?:no (?:existe|encontrad|se (?:ha )?encontr|está disponible|` +
			`fue encontrad)|` +
			`não (?:existe|encontrad|foi encontrad|está disponível)|non (?:esiste|trovat|è stata trovata|è disponibile))`,
		`(?:страниц|сторінк|стать[яи]).{0,40}(?:не (?:найден|знайден|существует|існує)|нет|удален|видален)`, `такой страницы (?:нет|` +
			`не существует)`,
		`(?:ошибка|помилка|خطأ|lỗi|kesalahan|błąd|fejl|chyba|hata|σφάλμα) 404`,
		`(?:الصفحة|صفحه|المقال).{0,40}(?:غير موجود|غير متاح|لم يتم العثور|یافت نشد|غير متوفر)`, `لم (?:يتم )?(?:العثور|` +
			`نعثر) على.{0,12}(?:الصفحة|صفحة)`,
		`ไม่พบ(?:หน้า|เพจ|บทความ).{0,30}`, `(?:trang|bài viết).{0,40}không (?:tồn tại|tìm thấy|còn)`, `không tìm thấy (?:trang|bài viết|` +
			`nội dung)`,
		`halaman.{0,30}tidak (?:ditemukan|ada|tersedia)`, `(?:pagina|artikel).{0,30}(?:niet gevonden|bestaat niet|niet bestaat)`,
		`stron.{0,40}(?:nie (?:została )?znaleziona|nie istnieje|nie znaleziono)`, `nie znaleziono strony`, `sayfa.{0,30}(?:bulunamadı|` +
			`mevcut değil)`,
		`(?:sidan|siden).{0,30}(?:hittas? inte|hittades inte|inte hittas|ikke fundet|ikke funnet|finnes ikke|findes ikke)`, `sivua ei löyt`,
		`stránka.{0,30}(?:nenalezena|neexistuje|nebyla nalezena|sa nenašla)`, `az oldal nem található`, `pagina nu a fost găsită`,
		`η σελίδα.{0,20}δεν (?:βρέθηκε|υπάρχει)`, `(?:הדף|העמוד).{0,20}(?:לא נמצא|אינו קיים)`, `(?:पृष्ठ|पेज).{0,20}नहीं मिला`,
	}
	all := ""
	for _, p := range pairs {
		all += "|" + p
	}
	return regexp.MustCompile(all[1:])
})

// accepts finds the button of a wall of consent.
var accepts = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(?:accept|agree|allow)(?: to)?(?: all| cookies| and continue)?\b|alle(?:s)? akzeptieren|zustimmen|` +
		`tout accepter|j'accepte|` +
		`aceptar|aceitar|accetta|akkoord|accepteren|принять|прийняти|모두 (?:동의|허용)|동의|同意|接受|موافق|قبول|ยอมรับ|đồng ý|setuju|terima`)
})

// aboutConsent matches a whole part of the title or the first heading of a wall of consent.
var aboutConsent = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:(?:we|.{1,30}) (?:value|values|respect|care about) your privacy|your privacy(?: choices| matters)?|` +
		`we use cookies.{0,20}|` +
		`(?:cookie|privacy|consent)(?:s| consent| settings| preferences| gate| wall)?|.{1,30} privacy gate|` +
		`(?:your )?(?:cookie )?consent(?: required)?|` +
		`datenschutz-?einstellungen|cookie-einstellungen|ihre privatsphäre.{0,30}|wir verwenden cookies|(?:gestion des|paramètres des) cookies|` +
		`nous respectons votre vie privée|valoramos (?:tu|su) privacidad|valorizamos (?:a )?sua privacidade|쿠키.{0,20}|개인정보.{0,20}동의.{0,10}|` +
		`クッキー.{0,20}|.{1,30} is part of the yahoo family of brands|.{1,30} ist teil der yahoo.{0,30})$`)
})

// captchas are the elements of tests that any site can use, in its forms too.
var captchas = []sign{
	{Challenge, "Google reCAPTCHA", "g-recaptcha", weakWords},
	{Challenge, "hCaptcha", "h-captcha", weakWords},
	{Challenge, "hCaptcha", "hcaptcha.com", weakWords},
	{Challenge, "Cloudflare", "cf-turnstile", weakWords},
	{Challenge, "Arkose Labs", "funcaptcha", weakWords},
	{Challenge, "GeeTest", "geetest", weakWords},
	{Challenge, "Yandex", "smartcaptcha", weakWords},
}

// bare reports whether a page has nothing to read or to fill in besides a few words.
func (p page) bare() bool { return p.links <= 3 && p.fields == 0 && p.media <= 3 }
