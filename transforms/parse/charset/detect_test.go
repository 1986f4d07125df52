package charset_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/korean"

	own "github.com/newsfork/seed-engine/transforms/parse/charset"
)

// notices are short pages' texts, written for this test: a heading, and a
// paragraph of two sentences.
var notices = []struct{ in, heading, text string }{
	{"shift_jis euc-jp iso-2022-jp", "図書館からのお知らせ", "来週の月曜日は図書整理のため休館します。返却ポストは通常どおりご利用いただけます。"},
	{"big5", "圖書館公告", "下週一因整理圖書暫停開放一天。還書箱照常使用，造成不便敬請見諒。"},
	{"gbk gb18030", "图书馆通知", "下周一因整理图书暂停开放一天。还书箱照常使用，给您带来不便敬请谅解。"},
	{"euc-kr", "도서관 휴관 안내", "다음 주 월요일은 도서 정리로 휴관합니다. 반납함은 평소처럼 이용하실 수 있습니다."},
	{"windows-1251 koi8-u", "Объявление библиотеки", "В следующий понедельник библиотека будет закрыта. Книги можно вернуть через ящик у входа."},
	{"windows-1251 koi8-u", "Оголошення бібліотеки", "Наступного понеділка бібліотека буде зачинена. Книжки можна повернути через скриньку біля входу."},
	{"windows-1251", "Съобщение от библиотеката", "Следващия понеделник библиотеката ще бъде затворена. Книгите могат да се връщат в кутията до входа."},
	{"windows-1253 iso-8859-7", "Ανακοίνωση της βιβλιοθήκης", "Την επόμενη Δευτέρα η βιβλιοθήκη θα παραμείνει κλειστή. Τα βιβλία επιστρέφονται στο κουτί της εισόδου."},
	{"windows-1255", "הודעת הספרייה", "ביום שני הבא תהיה הספרייה סגורה. אפשר להחזיר ספרים בתיבה שליד הכניסה."},
	{"windows-1256", "إعلان من المكتبة", "ستكون المكتبة مغلقة يوم الاثنين القادم. يمكن إعادة الكتب في الصندوق عند المدخل."},
	{"windows-874", "ประกาศจากห้องสมุด", "ห้องสมุดจะปิดทำการในวันจันทร์หน้า ท่านสามารถคืนหนังสือได้ที่กล่องหน้าทางเข้า"},
	{"windows-1250 iso-8859-2", "Ogłoszenie biblioteki", "W przyszły poniedziałek biblioteka będzie zamknięta. Książki można zwracać do skrzynki przy wejściu."},
	{"windows-1250 iso-8859-2", "Oznámení knihovny", "Příští pondělí bude knihovna zavřená. Knihy můžete vrátit do schránky vedle hlavního vchodu."},
	{"windows-1254", "Kütüphane duyurusu", "Önümüzdeki pazartesi günü kütüphane kapalı olacaktır. Kitapları girişteki kutuya bırakabilirsiniz."},
	{"windows-1252", "Avis de la bibliothèque", "La bibliothèque sera fermée lundi prochain. Les livres peuvent être déposés dans la boîte à l’entrée."},
	{"windows-1252", "Mitteilung der Bücherei", "Am nächsten Montag bleibt die Bücherei geschlossen. Bücher können in den Kasten am Eingang gelegt werden – für später."},
	{"windows-1252", "Aviso de la biblioteca", "El próximo lunes la biblioteca permanecerá cerrada. Los libros se devolverán en el buzón del jardín, según el horario."},
	{"windows-1252", "Non è aperta", "La biblioteca non è aperta lunedì prossimo. È possibile restituire i libri: così la coda è più breve."},
	{"windows-1252", "Tilkynning", "Bókasafnið verður lokað næsta mánudag. Bókum má skila í kassann við innganginn."},
}

// wide are encodings of two bytes a character, which one heading may be too little of.
const wide = "shift_jis euc-jp big5 gbk gb18030"

// Pages that declare nothing: of one heading, of a paragraph more, and long ones.
func TestDetect(t *testing.T) {
	for _, n := range notices {
		for name := range strings.FieldsSeq(n.in) {
			enc, _ := charset.Lookup(name)
			for i, text := range []string{n.heading, n.heading + "</h1><p>" + n.text, strings.Repeat(n.text+" ", 500)} {
				page := "<!doctype html><html><head><title>A library</title><script>var a = 1 < 2</script></head><body class='page'><h1>" + text + "</body></html>"
				body, err := enc.NewEncoder().String(page)
				require.NoError(t, err, name)
				if i == 0 && strings.Contains(wide, name) {
					continue
				}
				got, as, err := own.Decode([]byte(body), "")
				if err != nil || got != page {
					t.Errorf("%.60s in %s: read as %s (%v): %.60s", text, name, as, err, strings.TrimSpace(got[strings.Index(got, "<h1>")+4:]))
				}
				declared, as, err := own.Decode([]byte(body), "text/html; charset="+name)
				if err != nil || declared != page || as != own.Label(name) {
					t.Errorf("%.60s declared as %s: read as %s (%v)", text, name, as, err)
				}
			}
		}
	}
}

// What is detected is the same each time, whatever the body is cut to.
func TestDetectIsStable(t *testing.T) {
	body, err := korean.EUCKR.NewEncoder().String("<p>" + strings.Repeat("다음 주 월요일은 도서 정리로 휴관합니다. ", 2000))
	require.NoError(t, err)
	for _, cut := range []int{40, 41, 100, 101, 20_000, 20_001} {
		seen := map[string]bool{}
		for range 20 {
			_, name, err := own.Decode([]byte(body[:cut]), "")
			seen[fmt.Sprint(name, err)] = true
		}
		assert.True(t, len(seen) == 1 && seen["euc-kr<nil>"], "cut at %d: %v", cut, seen)
	}
}

// Of encodings that are as likely as each other the same one is chosen each time; the detector
// tells them in a random order.
func TestEquallyLikely(t *testing.T) {
	body := []byte("<pOzn\xe1men\xed knihovny</S>P\xf8\xed\xb9t\xed pond\xecl\x87\x87\x87\x87de knihovna zav\xf8en\xe1. Knihy m\xf9\xbeete vr\xe1tit do schr\xe1nky vedle hlavn\xed")
	for range 100 {
		_, name, err := own.Decode(body, "")
		require.True(t, err == nil && name == "windows-1250", "read as %s: %v", name, err)
	}
}
