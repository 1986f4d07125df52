// Package catalogsim adds simulated product registers and shops to the
// simulated web, for tests and for the catalog job's --web=demo. All of it
// is demo data: the products, companies and certificates do not exist. No promise: see docs/library.md.
package catalogsim

import (
	_ "embed"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"text/template"
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
	matter, gadgets = NewMatter(Pages, PerPage), newSite(8, 6, gadgetsHost)
	handle(MatterHost, matter)
	handle(gadgetsHost, gadgets)
	return matter, gadgets
}

// Site is a simulated site. Its methods may be called while it answers.
type Site struct {
	Host    string
	PerPage int

	pages   atomic.Int64
	version atomic.Int64
}

// NewMatter is a register of certified products in the shape of the CSA's.
func NewMatter(pages, perPage int) *Site { return newSite(pages, perPage, MatterHost) }

func newSite(pages, perPage int, host string) *Site {
	s := &Site{Host: host, PerPage: perPage}
	s.pages.Store(int64(pages))
	return s
}

// SetPages changes the number of list pages. Products are numbered from the end of
// the last page, so that new ones come first, as in a real list.
func (s *Site) SetPages(n int) { s.pages.Store(int64(n)) }

// Change changes the firmware version, or price, of every tenth product.
func (s *Site) Change() { s.version.Add(1) }

// DetailPath returns the path of product n; the oldest is product 1.
func (s *Site) DetailPath(n int) string {
	if s.Host == MatterHost {
		return fmt.Sprintf("/csa_product/demo-product-%05d/", n)
	}
	return fmt.Sprintf("/shop/item/%d", n)
}

// ListPath returns the path and query of a list page.
func (s *Site) ListPath(page int) string {
	if s.Host == MatterHost {
		return fmt.Sprintf("/csa-iot_products/page/%d/?p_keywords=&p_type%%5B%%5D=14&p_program_type%%5B%%5D=1049&p_certificate=&p_family=&p_firmware_ver=", page)
	}
	if page == 1 {
		return "/shop/"
	}
	return fmt.Sprintf("/shop/more?after=%d", (page-1)*s.PerPage)
}

// products returns the number of products.
func (s *Site) products() int { return int(s.pages.Load()) * s.PerPage }

func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	last := int(s.pages.Load())
	n, at := s.productOf(r.URL.Path), s.page(r)
	switch {
	case r.URL.Path == "/robots.txt":
		answer(w, "text/plain; charset=utf-8", "User-agent: *\nDisallow: /admin/\n")
	case n >= 1 && n <= s.products():
		answer(w, "text/html; charset=utf-8", s.detail(n))
	case at >= 1 && at <= last:
		answer(w, "text/html; charset=utf-8", s.list(at, last))
	default:
		http.NotFound(w, r)
	}
}

func answer(w http.ResponseWriter, kind, text string) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = io.WriteString(w, text) // the client has closed the connection
}

// productOf returns the number of the product that a path shows, 0 for another path.
func (s *Site) productOf(path string) int {
	prefix := "/shop/item/"
	if s.Host == MatterHost {
		prefix = "/csa_product/demo-product-"
	}
	rest, _ := strings.CutPrefix(path, prefix)
	n, _ := strconv.Atoi(strings.TrimSuffix(rest, "/")) // 0: it is none
	return n
}

func (s *Site) page(r *http.Request) int {
	matter, is := strings.CutPrefix(r.URL.Path, "/csa-iot_products/page/")
	after, err := strconv.Atoi(r.URL.Query().Get("after"))
	switch {
	case s.Host == MatterHost && is:
		n, _ := strconv.Atoi(strings.TrimSuffix(matter, "/")) // 0: it is no page
		return n
	case s.Host == MatterHost:
	case r.URL.Path == "/shop/":
		return 1
	case r.URL.Path == "/shop/more" && err == nil && after%s.PerPage == 0:
		return after/s.PerPage + 1
	}
	return 0
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

//go:embed matter.html
var text string

// pages are the templates of the sites' pages. Those of Matter have the shape that other readers of the register document: see the
// sources in transforms/catalog/testdata/matter-labels.tsv.
var pages = template.Must(template.New("").Parse(text))

func page(name string, data any) string {
	var b strings.Builder
	if err := pages.ExecuteTemplate(&b, name, data); err != nil {
		return err.Error() // the templates and their data are ours
	}
	return b.String()
}

// product is what a page says of product n.
type product struct {
	Host, Path, Company, Device, Certificate string
	N, Software, Stars                       int
	Cents                                    int64
	Old                                      bool
	Date                                     string
	Rows                                     [][2]string
	Related                                  *product
}

func (s *Site) product(n int) *product {
	return &product{Host: s.Host, Path: s.DetailPath(n), Company: companies[n%len(companies)], Device: devices[n%len(devices)], N: n,
		Certificate: fmt.Sprintf("CSA%02d%05dMAT%05d-24", n%90+10, n, n), Software: 16000 + n, Stars: n%5 + 1, Cents: s.revision(n) % 10,
		Old: n%5 == 0, Date: first.AddDate(0, 0, n).Format("01/02/2006")}
}

// detail is the page of product n.
func (s *Site) detail(n int) string {
	p := s.product(n)
	if s.Host == gadgetsHost {
		return page("gadgets", p)
	}
	vid, pid := "Vendor ID", "Product ID"
	if p.Old {
		vid, pid = "VID", "PID"
	} else {
		p.Rows = [][2]string{{"Certified Date", p.Date}}
	}
	p.Rows = append(p.Rows, [2]string{"Firmware Version", fmt.Sprintf("%d.%d.%d", n%4+1, n%10, s.revision(n))},
		[2]string{"Hardware Version", fmt.Sprintf("%d.0", n%3+1)}, [2]string{"Certificate ID", p.Certificate})
	if n%7 != 0 {
		p.Rows = append(p.Rows, [2]string{pid, fmt.Sprintf("0x%04X", n&0xffff)})
	}
	p.Rows = append(p.Rows, [][2]string{{vid, fmt.Sprintf("0x%04X", 0x1000+n%len(companies))}, {"Family ID", fmt.Sprintf("FAM%05d", n)},
		{"Family SKU", fmt.Sprintf("SKU-%d", n)}, {"Family Variant SKU", fmt.Sprintf("SKU-%d-A", n)}, {"TIS/TRP Tested", []string{"Yes", "No"}[n%2]},
		{"Specification Version", fmt.Sprintf("1.%d", n%4)}, {"Transport Interface", transport[n%len(transport)]},
		{"Primary Device Type ID", fmt.Sprintf("0x%04X", 0x0100+n%len(devices))}, {"Program Type", "Matter"}}...)
	p.Related = s.product(n%s.products() + 1)
	return page("matter", p)
}

// list is a list page, the newest products first.
func (s *Site) list(at, last int) string {
	type number struct{ Text, Path string }
	v := struct {
		Site     *Site
		Products []*product
		Numbers  []number
		Previous bool
		Next     string
	}{Site: s, Previous: at > 1}
	for n := s.products() - (at-1)*s.PerPage; len(v.Products) < s.PerPage && n > 0; n-- {
		v.Products = append(v.Products, s.product(n))
	}
	if at < last {
		v.Next = s.ListPath(at + 1)
	}
	if s.Host == gadgetsHost {
		return page("gadgets list", v)
	}
	for _, p := range []int{1, at - 1, at, at + 1, last} {
		text := strconv.Itoa(p)
		if p > 999 {
			text = fmt.Sprintf("%d,%03d", p/1000, p%1000)
		}
		switch {
		case p == at:
			v.Numbers = append(v.Numbers, number{Text: text})
		case p >= 1 && p <= last:
			v.Numbers = append(v.Numbers, number{text, s.ListPath(p)})
		}
	}
	return page("matter list", v)
}
