// Package catalogsim adds simulated product registers and shops to the
// simulated web, for tests and for the catalog job's --web=demo. All of it
// is demo data: the products, companies and certificates do not exist. No promise: see docs/library.md.
package catalogsim

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The simulated hosts.
const (
	MatterHost  = "csa-iot.org"     // in the shape of the Matter list: numbered pages
	gadgetsHost = "gadgets.example" // another shop: next links
)

// What a site has by default.
const (
	Pages   = 50
	PerPage = 12
)

// Install adds both sites at their full size. handle sets the handler of a host
// of the simulated web; it is webtest's Web.Handle.
func Install(handle func(host string, site http.Handler)) (matter, gadgets *Site) {
	matter, gadgets = NewMatter(Pages, PerPage), newSite(8, 6, gadgetsHost, gadgetsList, gadgetsDetail)
	handle(MatterHost, matter)
	handle(gadgetsHost, gadgets)
	return matter, gadgets
}

// Site is a simulated site. Its methods may be called while it answers.
type Site struct {
	perPage int
	host    string
	list    func(s *Site, page, pages int) string
	detail  func(s *Site, n int) string

	pages   atomic.Int64
	version atomic.Int64
	robots  atomic.Pointer[string]

	mu    sync.Mutex
	rules map[string]*rule
}

type rule struct {
	times, status int
	retryAfter    string
	hang          bool
}

// NewMatter is a register of certified products in the shape of the CSA's.
func NewMatter(pages, perPage int) *Site {
	return newSite(pages, perPage, MatterHost, matterList, matterDetail)
}

func newSite(pages, perPage int, host string, list func(*Site, int, int) string, detail func(*Site, int) string) *Site {
	s := &Site{perPage: perPage, host: host, list: list, detail: detail, rules: map[string]*rule{}}
	s.pages.Store(int64(pages))
	return s
}

// SetPages changes the number of list pages. Products are numbered from the end of
// the last page, so that new ones come first, as in a real list.
func (s *Site) SetPages(n int) { s.pages.Store(int64(n)) }

// Change changes the firmware version, or price, of every tenth product.
func (s *Site) Change() { s.version.Add(1) }

// Robots replaces robots.txt, which otherwise allows everything.
func (s *Site) Robots(text string) { s.robots.Store(&text) }

// Fail sets the status of the next responses for a path; times below 0 means all.
func (s *Site) Fail(path string, times, status int, retryAfter string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules[path] = &rule{times: times, status: status, retryAfter: retryAfter}
}

// Hang makes a path, or every product page for the path "*", never respond.
func (s *Site) Hang(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules[path] = &rule{times: -1, hang: true}
}

// Mend undoes Fail and Hang.
func (s *Site) Mend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = map[string]*rule{}
}

// DetailPath returns the path of product n; the oldest is product 1.
func (s *Site) DetailPath(n int) string {
	if s.host == MatterHost {
		return fmt.Sprintf("/csa_product/demo-product-%05d/", n)
	}
	return fmt.Sprintf("/shop/item/%d", n)
}

// ListPath returns the path and query of a list page.
func (s *Site) ListPath(page int) string {
	if s.host == MatterHost {
		return fmt.Sprintf("/csa-iot_products/page/%d/?p_keywords=&p_type%%5B%%5D=14&p_program_type%%5B%%5D=1049&p_certificate=&p_family=&p_firmware_ver=", page)
	}
	if page == 1 {
		return "/shop/"
	}
	return fmt.Sprintf("/shop/more?after=%d", (page-1)*s.perPage)
}

// products returns the number of products.
func (s *Site) products() int { return int(s.pages.Load()) * s.perPage }

func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.RequestURI()
	s.mu.Lock()
	var hit rule
	for _, p := range []string{path, r.URL.Path, "*"} {
		_, product := s.product(r.URL.Path)
		f := s.rules[p]
		if f == nil || p == "*" && !product || f.times == 0 {
			continue
		}
		if f.times > 0 {
			f.times--
		}
		hit = *f
		break
	}
	s.mu.Unlock()
	switch {
	case hit.hang:
		<-r.Context().Done()
		return
	case hit.status != 0:
		if hit.retryAfter != "" {
			w.Header().Set("Retry-After", hit.retryAfter)
		}
		w.WriteHeader(hit.status)
		return
	}
	if r.URL.Path == "/robots.txt" {
		text := "User-agent: *\nDisallow: /admin/\n"
		if p := s.robots.Load(); p != nil {
			text = *p
		}
		answer(w, "text/plain; charset=utf-8", text)
		return
	}
	if n, ok := s.product(r.URL.Path); ok && n >= 1 && n <= s.products() {
		answer(w, "text/html; charset=utf-8", s.detail(s, n))
		return
	}
	if page := s.page(r); page >= 1 && page <= int(s.pages.Load()) {
		answer(w, "text/html; charset=utf-8", s.list(s, page, int(s.pages.Load())))
		return
	}
	http.NotFound(w, r)
}

func answer(w http.ResponseWriter, kind, text string) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = io.WriteString(w, text) // the client has closed the connection
}

func (s *Site) product(path string) (int, bool) {
	prefix := "/shop/item/"
	if s.host == MatterHost {
		prefix = "/csa_product/demo-product-"
	}
	rest, ok := strings.CutPrefix(path, prefix)
	n, err := strconv.Atoi(strings.TrimSuffix(rest, "/"))
	return n, ok && err == nil
}

func (s *Site) page(r *http.Request) int {
	matter, is := strings.CutPrefix(r.URL.Path, "/csa-iot_products/page/")
	after, err := strconv.Atoi(r.URL.Query().Get("after"))
	switch {
	case s.host == MatterHost && is:
		n, _ := strconv.Atoi(strings.TrimSuffix(matter, "/")) // 0: it is no page
		return n
	case s.host == MatterHost:
	case r.URL.Path == "/shop/":
		return 1
	case r.URL.Path == "/shop/more" && err == nil && after%s.perPage == 0:
		return after/s.perPage + 1
	}
	return 0
}

// on returns the numbers of the products on a page, the newest first.
func (s *Site) on(page int) []int {
	var out []int
	first := s.products() - (page-1)*s.perPage
	for n := first; n > first-s.perPage && n > 0; n-- {
		out = append(out, n)
	}
	return out
}

var (
	companies = []string{"Hanbit Lighting", "Nordlicht GmbH", "Blue Heron Labs", "Tanaka Denki", "Maple & Oak Home", "Café Domótica"}
	devices   = []string{"Dimmable Light", "Smart Plug", "Door Lock", "Thermostat", "Contact Sensor", "Window Covering"}
	transport = []string{"Thread", "Wi-Fi", "Ethernet", "Thread, Bluetooth"}
	first     = time.Date(2022, 11, 4, 0, 0, 0, 0, time.UTC)
)

// revision returns how often product n has changed.
func (s *Site) revision(n int) int64 {
	if n%10 == 0 {
		return s.version.Load()
	}
	return 0
}

const filler = `<p>This page is part of a simulated register: the product is demo data and does not exist. It stands in for the running text,
the navigation and the scripts that a real page carries around the few lines that matter, so that reading it costs what reading a real page does.</p>`

const links = `<nav><a href=/>Home</a><a href=/about/>About</a></nav>`

// matterList and matterDetail have the shape that other readers of the register document: see
// the sources in transforms/catalog/testdata/matter-labels.tsv.
func matterList(s *Site, page, pages int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<!DOCTYPE html><html lang=en><head><title>Certified products (demo data)</title></head><body><header>%s</header>"+
		"<div class=\"post-feed item-count-%d\"><div class=inner>", links, s.perPage)
	for _, n := range s.on(page) {
		s.card(&b, n)
	}
	b.WriteString(`</div></div>` + filler + `<div class="pagination-wrapper"><nav><div>`)
	for _, p := range []int{1, page - 1, page, page + 1, pages} {
		text := strconv.Itoa(p)
		if p > 999 {
			text = fmt.Sprintf("%d,%03d", p/1000, p%1000)
		}
		switch {
		case p == page:
			fmt.Fprintf(&b, `<span class="page-numbers current">%s</span>`, text)
		case p >= 1 && p <= pages:
			fmt.Fprintf(&b, `<a class="page-numbers" href="https://%s%s"><span>%s</span></a>`, s.host, html.EscapeString(s.ListPath(p)), text)
		}
	}
	if page < pages {
		fmt.Fprintf(&b, `<a class="next page-numbers" href="https://%s%s"><span>Next</span></a>`, s.host, html.EscapeString(s.ListPath(page+1)))
	}
	b.WriteString("</div></nav></div></body></html>")
	return b.String()
}

// card writes a product as a list page and the related products of another one show it.
func (s *Site) card(b *strings.Builder, n int) {
	fmt.Fprintf(b, `<article class="post-%d product type-product"><a href="https://%s%s"><div class=inner>`+
		`<p class="entry-company notranslate">%s</p><h3 class="entry-title">%s %d</h3><p class="entry-certificate-id">Certificate ID: %s</p>`+
		`</div></a></article>`, n, s.host, s.DetailPath(n), html.EscapeString(companies[n%len(companies)]),
		devices[n%len(devices)], n, certificate(n))
}

func certificate(n int) string { return fmt.Sprintf("CSA%02d%05dMAT%05d-24", n%90+10, n, n) }

func matterDetail(s *Site, n int) string {
	var b strings.Builder
	device, company, old := devices[n%len(devices)], html.EscapeString(companies[n%len(companies)]), n%5 == 0
	fmt.Fprintf(&b, `<!DOCTYPE html><html lang=en><head><title>%s %d (demo data)</title><script>var page = {"id": %d};</script></head><body>`+
		`<header>%s</header>%s<main>`, device, n, n, links, filler)
	fmt.Fprintf(&b, `<h6 class="entry-category">%s</h6><h1 class="entry-title">%s %d</h1><p class="entry-company notranslate">%s</p>`+
		`<div class="entry-overview"><p>Demo data no. %d.</p></div>`+
		`<div class="entry-product-details"><div><ul class="detail-items">`, device, device, n, company, n)
	row := func(label, value string) {
		fmt.Fprintf(&b, `<li class="item"><span class="label">%s</span> <span class="value">%s</span></li>`, label, html.EscapeString(value))
	}
	vid, pid, date := "Vendor ID", "Product ID", first.AddDate(0, 0, n).Format("01/02/2006")
	if old {
		vid, pid = "VID", "PID"
	} else {
		row("Certified Date", date)
	}
	row("Firmware Version", fmt.Sprintf("%d.%d.%d", n%4+1, n%10, s.revision(n)))
	row("Hardware Version", fmt.Sprintf("%d.0", n%3+1))
	row("Certificate ID", certificate(n))
	if n%7 != 0 {
		row(pid, fmt.Sprintf("0x%04X", n&0xffff))
	}
	row(vid, fmt.Sprintf("0x%04X", 0x1000+n%len(companies)))
	row("Family ID", fmt.Sprintf("FAM%05d", n))
	row("Family SKU", fmt.Sprintf("SKU-%d", n))
	row("Family Variant SKU", fmt.Sprintf("SKU-%d-A", n))
	row("TIS/TRP Tested", map[bool]string{true: "Yes", false: "No"}[n%2 == 0])
	row("Specification Version", fmt.Sprintf("1.%d", n%4))
	row("Transport Interface", transport[n%len(transport)])
	row("Primary Device Type ID", fmt.Sprintf("0x%04X", 0x0100+n%len(devices)))
	row("Program Type", "Matter")
	b.WriteString(`</ul></div></div><table class="product-certificates-table">`)
	if old {
		fmt.Fprintf(&b, `<tr><td>Certification Date</td><td>%s</td></tr>`, date)
	}
	fmt.Fprintf(&b, `<tr><td>Software Version</td><td>%d</td></tr></table><div><h3>Application Categories</h3><ul><li>%s</li></ul></div>`+
		`<a class="button" href="/wp-content/uploads/%d.zip">Compliance Document</a>`+
		`<section class="more"><div class="post-feed">`, 16000+n, device, n)
	s.card(&b, n%s.products()+1)
	b.WriteString("</div></section></main><footer>" + filler + filler + "</footer></body></html>")
	return b.String()
}

func gadgetsList(s *Site, page, pages int) string {
	var b strings.Builder
	b.WriteString("<!DOCTYPE html><html><head><title>Gadgets (demo data)</title></head><body><ol class=goods>")
	for _, n := range s.on(page) {
		fmt.Fprintf(&b, `<li><h3><a href="item/%d">Gadget no. %d</a></h3><p>%d.90</p></li>`, n, n, n)
	}
	b.WriteString("</ol><ul class=pager>")
	if page > 1 {
		b.WriteString(`<li class=previous><a href="/shop/">first</a></li>`)
	}
	if page < pages {
		fmt.Fprintf(&b, `<li class=next><a href="%s">more</a></li>`, s.ListPath(page+1))
	}
	b.WriteString("</ul></body></html>")
	return b.String()
}

func gadgetsDetail(s *Site, n int) string {
	stock := "Yes"
	if n%5 == 0 {
		stock = "No"
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<!DOCTYPE html><html><head><title>Gadget no. %d (demo data)</title><meta itemprop=sku content="G-%04d"></head><body><div id=product><h2>Gadget no. %d</h2>`, n, n, n)
	fmt.Fprintf(&b, `<p class=price>EUR %d.9%d</p><p class=stars data-rating=%d></p><table><tr><th>In stock<td class=stock>%s</table><ul class=tags><li>demo<li>gadget</ul></div></body></html>`, n, s.revision(n)%10, n%5+1, stock)
	return b.String()
}
