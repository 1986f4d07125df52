package face

import (
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/server/known"
)

// Pages are rendered once for all readers, with times in UTC. If a reader's cookie names another zone, the times of the finished page
// are rewritten: a page in each zone would have to be rendered again.

const zoneCookie = "seed_zone"

// when is a time on a page.
func when(t time.Time) template.HTML {
	if t.IsZero() {
		return "–"
	}
	t = t.UTC()
	return template.HTML(`<time datetime="` + t.Format(time.RFC3339) + `">` + t.Format(time.DateTime) + `</time>`) //nolint:gosec // digits
}

var (
	timeOnPage = regexp.MustCompile(`(<\w+ (?:datetime|data-at)="([^"]*)">)([^<]*)`)
	zoneOnPage = regexp.MustCompile(`( data-zone="">)UTC<`)
)

// layouts are those of times on pages, by their lengths.
var layouts = map[int]string{19: time.DateTime, 11: "01-02 15:04", 8: time.TimeOnly}

// inZone writes a page's times in a zone.
func inZone(page []byte, zone *time.Location) []byte {
	if zone == time.UTC {
		return page
	}
	page = zoneOnPage.ReplaceAll(page, []byte("${1}"+template.HTMLEscapeString(zone.String())+"<"))
	return timeOnPage.ReplaceAllFunc(page, func(found []byte) []byte {
		m := timeOnPage.FindSubmatch(found)
		t, err := time.Parse(time.RFC3339, string(m[2]))
		layout := layouts[len(m[3])]
		if err != nil || layout == "" { // a day
			return found
		}
		return append(m[1], t.In(zone).Format(layout)...)
	})
}

// zoneOf is the zone that the person chose.
func zoneOf(r *http.Request) *time.Location {
	if c, err := r.Cookie(zoneCookie); err == nil && c.Value != "Local" { // the server's
		if zone, err := known.Zone(c.Value); err == nil {
			return zone
		}
	}
	return time.UTC
}

// setZone keeps the zone that a person chose, and returns to the page on which that was.
func (f *Face) setZone(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("zone")
	zone, err := known.Zone(name)
	if err != nil || name == "Local" {
		f.Fail(w, r, known.Refuse("timezone %q is unknown; use a name such as Asia/Seoul", known.Clip(name)))
		return
	}
	http.SetCookie(w, &http.Cookie{Name: zoneCookie, Value: zone.String(), Path: "/", MaxAge: int((365 * 24 * time.Hour).Seconds()),
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: r.TLS != nil})
	back := "/"
	if u, err := url.Parse(r.Referer()); err == nil && u.Host == r.Host && u.Path != "/zone" {
		back += strings.TrimLeft(u.RequestURI(), "/") // never another host
	}
	http.Redirect(w, r, back, http.StatusSeeOther)
}
