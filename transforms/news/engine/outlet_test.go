package engine_test

import (
	"fmt"
	"html"
	"net/http"
	"strings"
	"sync"
	"time"
)

// outlet is a publisher's site by the forms of its addresses and of what names its articles.
type outlet struct {
	Host     string
	Path     string            // of an article, with %s for its number, {yyyy}, {mm}, {mon} and {dd} for its day
	Language string            // one of those of stories
	Zone     *time.Location    // nil: UTC
	Robots   string            // "" for a 404
	Sources  map[string]string // what is at a path with its query: rss, rdf, atom, urlset, news, index, home (a page that links to /feed)
	Others   []string          // more hosts that answer as this one does: of feeds
}

// outletSite is an outlet that answers. Its methods may be called while it does.
type outletSite struct {
	outlet
	day      time.Time
	mu       sync.Mutex
	articles int
	edits    map[int]int    // by article: how often it was edited
	answers  map[string]int // by path: a status in place of the page; "*" is every article
}

// add adds a publisher. Its newest articles are from the day on which the tests begin.
func (w *world) add(o outlet) *outletSite {
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	y, m, d := begin.In(o.Zone).Date()
	s := &outletSite{outlet: o, day: time.Date(y, m, d, 0, 0, 0, 0, o.Zone), articles: 12, edits: map[int]int{}, answers: map[string]int{}}
	for _, host := range append(o.Others, o.Host) {
		w.sim.Handle(host, s)
	}
	return s
}

// publish adds newer articles.
func (s *outletSite) publish(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.articles += n
}

// edit changes the date of article n, counted from 1, in what names it.
func (s *outletSite) edit(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.edits[n]++
}

// answer sets the status of a path with its query.
func (s *outletSite) answer(path string, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[path] = status
}

// ServeHTTP answers as the publisher does.
func (s *outletSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, article := r.URL.RequestURI(), 0
	for n := 1; n <= s.articles; n++ {
		if s.path(n) == at {
			article = n
		}
	}
	status := s.answers[at]
	if article > 0 && status == 0 {
		status = s.answers["*"]
	}
	body, kind := s.sources()[at], "application/xml"
	switch {
	case at == "/robots.txt":
		body, kind = s.Robots, "text/plain"
	case article > 0:
		body = s.page(article)
	}
	if strings.HasPrefix(body, "<!doctype html>") {
		kind = "text/html; charset=utf-8"
	}
	switch {
	case status != 0:
		http.Error(w, "demo", status)
	case body == "":
		http.NotFound(w, r)
	default:
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write([]byte(body))
	}
}

func (s *outletSite) path(n int) string {
	at := s.published(n)
	number := s.day.Format("20060102") + fmt.Sprintf("%04d", n)
	return strings.NewReplacer("%s", number, "{yyyy}", at.Format("2006"), "{mm}", at.Format("01"), "{dd}", at.Format("02"), "{mon}", strings.ToLower(at.Format("Jan"))).Replace(s.Path)
}

// published returns when article n was published: a higher number is later.
func (s *outletSite) published(n int) time.Time {
	return s.day.Add(-time.Hour).Add(time.Duration(n-12) * 37 * time.Minute)
}

func (s *outletSite) modified(n int) time.Time {
	return s.published(n).Add(time.Duration(s.edits[n]) * 20 * time.Minute)
}

// stories are a title and an article's text in a language, with the number of the article.
var stories = map[string][]string{
	"ar": {"تقرير تجريبي رقم %d: البنك المركزي يبقي سعر الفائدة", "أبقى البنك المركزي سعر الفائدة دون تغيير في اجتماعه رقم %d، وفقا لبيانات هذا العرض التجريبي التي نشرت اليوم.", "ويقول محللون إن أي خفض لن يناقش قبل أن تتراجع الأسعار لعدة أشهر متتالية، كما ورد في النص.", "هذا المقال بيانات خيالية للاختبار ولا يصف شيئا حدث في الواقع على الإطلاق."},
	"da": {"Demoartikel %d: Nationalbanken holder renten i ro", "Nationalbanken holdt renten uændret på sit møde nummer %d, skriver denne demonstration i sine opdigtede data fra i dag.", "Økonomer venter, at en nedsættelse først bliver drøftet, når priserne er faldet i flere måneder i træk.", "Artiklen er opdigtede data til en test, og intet af det, som den beskriver, er sket i virkeligheden."},
	"de": {"Demoartikel %d: Zentralbank lässt den Leitzins unverändert", "Die Zentralbank hat in ihrer Sitzung Nummer %d den Leitzins nicht verändert, wie aus den erfundenen Daten dieser Vorführung hervorgeht.", "Fachleute rechnen damit, dass über eine Senkung erst gesprochen wird, wenn die Preise mehrere Monate lang gefallen sind.", "Dieser Artikel besteht aus erfundenen Daten für einen Test, und nichts von dem, was er beschreibt, ist geschehen."},
	"en": {"Demo story %d: Central bank keeps its rate unchanged", "The central bank left its rate unchanged at meeting number %d, according to the made-up data of this demonstration.", "Analysts expect that a cut will be discussed only after prices have fallen for several months in a row.", "This article is made-up data for a test, and nothing that it describes has happened anywhere in the world."},
	"es": {"Artículo de prueba %d: el banco central mantiene los tipos", "El banco central mantuvo los tipos sin cambios en su reunión número %d, según los datos inventados de esta demostración.", "Los analistas esperan que una bajada se discuta solo cuando los precios hayan caído durante varios meses seguidos.", "Este artículo contiene datos inventados para una prueba, y nada de lo que describe ha sucedido en realidad."},
	"fi": {"Demojuttu %d: Keskuspankki piti korkonsa ennallaan", "Keskuspankki piti korkonsa ennallaan kokouksessaan numero %d, kertovat tämän esittelyn keksityt tiedot tänään.", "Asiantuntijat odottavat, että laskusta keskustellaan vasta, kun hinnat ovat laskeneet useita kuukausia peräkkäin.", "Tämä juttu on keksittyä aineistoa testiä varten, eikä mitään siinä kuvattua ole tapahtunut oikeasti."},
	"fr": {"Article de démonstration %d : la banque centrale maintient son taux", "La banque centrale a laissé son taux inchangé lors de sa réunion numéro %d, selon les données inventées de cette démonstration.", "Des économistes pensent qu'une baisse ne sera discutée que lorsque les prix auront reculé pendant plusieurs mois de suite.", "Cet article est fait de données inventées pour un test, et rien de ce qu'il décrit n'a eu lieu dans la réalité."},
	"id": {"Artikel demo %d: Bank sentral mempertahankan suku bunga", "Bank sentral mempertahankan suku bunga dalam rapat nomor %d, menurut data rekaan dari peragaan ini yang terbit hari ini.", "Para analis memperkirakan penurunan baru akan dibahas setelah harga turun selama beberapa bulan berturut-turut.", "Artikel ini adalah data rekaan untuk pengujian, dan tidak ada yang digambarkan di sini yang benar-benar terjadi."},
	"it": {"Articolo di prova %d: la banca centrale lascia invariati i tassi", "La banca centrale ha lasciato invariati i tassi nella riunione numero %d, secondo i dati inventati di questa dimostrazione.", "Gli analisti si aspettano che di un taglio si discuta solo quando i prezzi saranno scesi per diversi mesi di seguito.", "Questo articolo è fatto di dati inventati per una prova, e nulla di ciò che descrive è accaduto nella realtà."},
	"ja": {"デモ記事%d：中央銀行が政策金利を据え置き", "中央銀行は第%d回の会合で政策金利を据え置くことを決めたと、このデモのために作られた資料が伝えている。", "専門家は、物価が数か月続けて下がったあとでなければ、利下げは話し合われないだろうと見ている。", "この記事は試験のために作られた架空の資料であり、実際に起きたことを伝えるものではない。"},
	"ko": {"데모 기사 %d: 중앙은행, 기준금리 동결", "중앙은행이 %d차 회의에서 기준금리를 그대로 두기로 했다고 이 시연을 위해 만든 자료가 오늘 전했다.", "전문가들은 물가가 몇 달 동안 이어서 내려온 뒤에야 금리 인하를 논의할 것으로 내다보고 있다.", "이 기사는 시험을 위한 가상의 자료이며 실제로 일어난 일을 다루지 않는다는 점을 밝혀 둔다."},
	"nl": {"Demoartikel %d: centrale bank houdt de rente gelijk", "De centrale bank heeft de rente op vergadering nummer %d niet veranderd, blijkt uit de verzonnen gegevens van deze vertoning.", "Deskundigen verwachten dat over een verlaging pas wordt gesproken als de prijzen enkele maanden achter elkaar zijn gedaald.", "Dit artikel bestaat uit verzonnen gegevens voor een test, en niets van wat het beschrijft is werkelijk gebeurd."},
	"no": {"Demosak %d: Sentralbanken holder renten uendret", "Sentralbanken holdt renten uendret på møte nummer %d, ifølge de oppdiktede opplysningene i denne demonstrasjonen.", "Økonomer venter at et kutt først blir drøftet når prisene har falt flere måneder på rad, heter det videre.", "Denne saken er oppdiktede data til en test, og ingenting av det som den beskriver, har skjedd i virkeligheten."},
	"pl": {"Artykuł pokazowy %d: bank centralny nie zmienia stóp", "Bank centralny pozostawił stopy bez zmian na posiedzeniu numer %d, wynika ze zmyślonych danych tego pokazu.", "Analitycy oczekują, że o obniżce będzie mowa dopiero wtedy, gdy ceny spadną przez kilka miesięcy z rzędu.", "Ten artykuł to zmyślone dane do testu i nic z tego, co opisuje, nie wydarzyło się naprawdę."},
	"pt": {"Artigo de demonstração %d: banco central mantém a taxa", "O banco central manteve a taxa sem alteração na reunião número %d, segundo os dados inventados desta demonstração.", "Os analistas esperam que um corte só seja discutido depois de os preços caírem durante vários meses seguidos.", "Este artigo é feito de dados inventados para um teste, e nada do que descreve aconteceu na realidade."},
	"sv": {"Demoartikel %d: Riksbanken lämnar räntan oförändrad", "Riksbanken lämnade räntan oförändrad vid möte nummer %d, enligt de påhittade uppgifterna i den här demonstrationen.", "Ekonomer väntar sig att en sänkning diskuteras först när priserna har fallit flera månader i rad.", "Den här artikeln är påhittade data för ett test, och inget av det som den beskriver har hänt i verkligheten."},
	"tr": {"Deneme haberi %d: Merkez bankası faizi değiştirmedi", "Merkez bankası %d numaralı toplantısında faizi değiştirmedi; bu gösterinin uydurma verileri bugün böyle diyor.", "Uzmanlar, fiyatlar birkaç ay üst üste düşmeden bir indirimin görüşülmeyeceğini bekliyor, diye ekliyor metin.", "Bu haber bir sınama için uydurulmuş verilerden oluşur ve anlattığı hiçbir şey gerçekte yaşanmamıştır."},
	"uk": {"Демонстраційна стаття %d: центральний банк зберіг ставку", "Центральний банк не змінив ставку на засіданні номер %d, свідчать вигадані дані цієї демонстрації, оприлюднені сьогодні.", "Аналітики очікують, що про зниження говоритимуть лише після того, як ціни падатимуть кілька місяців поспіль.", "Ця стаття складається з вигаданих даних для перевірки, і нічого з описаного насправді не сталося."},
	"vi": {"Bài mẫu %d: Ngân hàng trung ương giữ nguyên lãi suất", "Ngân hàng trung ương giữ nguyên lãi suất tại cuộc họp số %d, theo dữ liệu hư cấu của phần trình diễn này.", "Các nhà phân tích cho rằng việc cắt giảm chỉ được bàn đến sau khi giá cả giảm nhiều tháng liên tiếp.", "Bài viết này là dữ liệu hư cấu dùng để kiểm thử, và không điều gì được mô tả ở đây đã thực sự xảy ra."},
	"zh": {"演示文章%d：中央银行维持利率不变", "中央银行在第%d次会议上决定维持利率不变，本次演示所用的虚构资料今天这样报道。", "分析人士认为，只有在物价连续几个月下降之后，才会讨论降低利率的问题，文中还提到。", "本文是为测试而编写的虚构资料，其中所述的任何事情都没有在现实中发生过。"},
}

// title returns the title of article n.
func (o outlet) title(n int) string { return fmt.Sprintf(stories[o.Language][0], n) }

// text returns the text of article n, a paragraph a line.
func (o outlet) text(n int) string {
	story := stories[o.Language]
	return fmt.Sprintf(story[1], n) + "\n" + story[2] + "\n" + story[3]
}

func (s *outletSite) page(n int) string {
	return `<!doctype html><html lang="` + s.Language + `"><head><meta charset="utf-8"><title>` + html.EscapeString(s.title(n)) + ` | Demo</title>
<meta property="og:site_name" content="Demo"><meta property="og:title" content="` + html.EscapeString(s.title(n)) + `">
<meta property="article:published_time" content="` + s.published(n).Format(time.RFC3339) + `"></head><body><nav><a href="/">Demo</a></nav>
<main><article><h1>` + html.EscapeString(s.title(n)) + `</h1><p>` + strings.ReplaceAll(html.EscapeString(s.text(n)), "\n", "</p>\n<p>") + `</p></article></main><footer>Demo</footer></body></html>`
}

// sources returns what names the articles.
func (s *outletSite) sources() map[string]string {
	out := map[string]string{}
	for at, kind := range s.Sources {
		switch kind {
		case "urlset":
			out[at] = s.urlset(func(int) string { return "" })
		case "news":
			out[at] = s.urlset(func(n int) string {
				return fmt.Sprintf(`<news:news><news:publication><news:name>Demo</news:name><news:language>%s</news:language></news:publication><news:publication_date>%s</news:publication_date><news:title>%s</news:title></news:news>`,
					s.Language, s.published(n).Format(time.RFC3339), html.EscapeString(s.title(n)))
			})
		case "index":
			parts := at + ".part"
			out[at] = `<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><sitemap><loc>https://` + s.Host + html.EscapeString(parts) + `</loc><lastmod>` + s.modified(s.articles).Format(time.RFC3339) + `</lastmod></sitemap></sitemapindex>`
			out[parts] = s.urlset(func(int) string { return "" })
		case "home":
			out[at] = `<!doctype html><html lang="` + s.Language + `"><head><meta charset="utf-8"><title>Demo</title><meta property="og:site_name" content="Demo"><link rel="alternate" type="application/rss+xml" href="/feed"></head><body>Demo</body></html>`
		default:
			out[at] = s.feed(kind)
		}
	}
	return out
}

// feed returns a feed of the newest articles, and of a page that is no article.
func (s *outletSite) feed(kind string) string {
	var b strings.Builder
	head, item, end := "<rss version=\"2.0\"><channel><title>Demo</title>", "<item><title>%[1]s</title><link>%[2]s</link><pubDate>%[3]s</pubDate></item>\n", "</channel></rss>"
	form := time.RFC1123Z
	switch kind {
	case "rdf":
		head = `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns="http://purl.org/rss/1.0/"><channel><title>Demo</title></channel>`
		item, end, form = "<item rdf:about=\"%[2]s\"><title>%[1]s</title><link>%[2]s</link><dc:date>%[3]s</dc:date></item>\n", "</rdf:RDF>", time.RFC3339
	case "atom":
		head, end, form = `<feed xmlns="http://www.w3.org/2005/Atom"><title>Demo</title>`, "</feed>", time.RFC3339
		item = "<entry><title>%[1]s</title><link href=\"%[2]s\"/><updated>%[3]s</updated></entry>\n"
	}
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + head)
	for n := s.articles; n > 0; n-- {
		fmt.Fprintf(&b, item, html.EscapeString(s.title(n)), html.EscapeString("https://"+s.Host+s.path(n)), s.modified(n).Format(form))
	}
	fmt.Fprintf(&b, item, "Demo", "https://"+s.Host+"/", s.published(1).Format(form))
	return b.String() + end
}

func (s *outletSite) urlset(more func(n int) string) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:news="http://www.google.com/schemas/sitemap-news/0.9">`)
	for n := range s.articles {
		fmt.Fprintf(&b, "<url><loc>https://%s%s</loc><lastmod>%s</lastmod>%s</url>\n", s.Host, html.EscapeString(s.path(n+1)), s.modified(n+1).Format(time.RFC3339), more(n+1))
	}
	return b.String() + `</urlset>`
}
