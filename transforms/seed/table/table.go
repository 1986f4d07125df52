// Package table is the Parquet form of domains: a row for each domain and partition. No promise: see docs/library.md.
package table

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/columnar"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/transforms/parse/rights"
	"github.com/newsfork/seed-engine/transforms/seed/metadata"
)

// Columns are what is queried about one domain in one partition, without what may be null:
// parquet-go reads a null of an embedded struct as 0.
type Columns struct {
	DomainID          string    `parquet:"domain_id" doc:"authority:country:registrable domain"`
	RegistrableDomain string    `parquet:"registrable_domain" doc:"the part of the host name that somebody registered"`
	Country           string    `parquet:"country,dict" doc:"of the partition, two lower-case letters"`
	Category          string    `parquet:"category,dict" doc:"of the partition"`
	Date              string    `parquet:"date,dict" doc:"of the partition, YYYY-MM-DD"`
	CollectedAt       time.Time `parquet:"collected_at,timestamp(microsecond)" doc:"when the domain was visited"`
	RawFilePath       string    `parquet:"raw_file_path,dict" doc:"the raw file that names the domain"`
	RecordIndex       int64     `parquet:"record_index" doc:"of the record in that file, from 0; -1: not known"`
	GivenID           string    `parquet:"source_domain_id" doc:"the record's domain_id as it is given; empty: none"`
	Confidence        string    `parquet:"source_confidence,dict" doc:"the record's confidence, a number from 0 to 1; empty: none"`
	Liveness          string    `parquet:"source_liveness_status,dict" doc:"the record's liveness_status; empty: none"`
	Hints             []string  `parquet:"source_content_hints,list" doc:"the record's content_hints"`
	Method            string    `parquet:"source_discovery_method,dict" doc:"the record's discovery_method; empty: none"`

	RobotsStatus   int32    `parquet:"robots_status" doc:"HTTP status of robots.txt; 0: no answer"`
	RobotsExists   bool     `parquet:"robots_exists" doc:"the site has a robots.txt"`
	RobotsError    string   `parquet:"robots_error,dict" doc:"why there is no answer, see domain-metadata.md; empty: there is one"`
	RobotsKind     string   `parquet:"robots_kind,dict" doc:"what answered for robots.txt: robots, or page, challenge …; empty: nothing, or an older row"`
	RobotsType     string   `parquet:"robots_content_type,dict" doc:"the media type that its answer states"`
	RobotsLast     int32    `parquet:"robots_last_status" doc:"HTTP status of its last answer; 0: none, or an older row"`
	RobotsFinal    string   `parquet:"robots_final_url" doc:"its URL after redirects or on another host, when it is another one"`
	HostUsed       string   `parquet:"host_used" doc:"the host that answered; empty: none, or an older row"`
	SiteState      string   `parquet:"site_state,dict" doc:"blocked, down or closed: a wall or nothing answers in place of what an earlier visit got; else empty"`
	SiteSince      string   `parquet:"site_since" doc:"since when, RFC 3339; later than collected_at: the row is of an earlier visit"`
	SiteLost       string   `parquet:"site_lost,dict" doc:"what an earlier visit got: robots, sitemap or both, with a space"`
	SitemapURLs    []string `parquet:"robots_sitemap_urls,list" doc:"sitemaps that robots.txt names"`
	SitemapURL     string   `parquet:"sitemap_url" doc:"the sitemap that is described, or the first candidate"`
	SitemapStatus  int32    `parquet:"sitemap_status" doc:"its HTTP status; 404: no candidate answered 2xx"`
	SitemapExists  bool     `parquet:"sitemap_exists" doc:"a candidate answered 2xx with a body, which may be a web page"`
	SitemapError   string   `parquet:"sitemap_error,dict" doc:"why there is no answer; empty: there is one"`
	SitemapKind    string   `parquet:"sitemap_kind,dict" doc:"urlset, index, rss, atom or text; or what came in place of a sitemap: page, challenge …; empty: nothing"`
	SitemapParsed  bool     `parquet:"sitemap_parsed" doc:"the site has a sitemap"`
	SitemapType    string   `parquet:"sitemap_content_type,dict" doc:"the media type that its answer states"`
	SitemapLast    int32    `parquet:"sitemap_last_status" doc:"where no candidate answered 2xx, the status that says most: 403 is not 404; 0: no answer, or an older row"`
	SitemapPartial bool     `parquet:"sitemap_partial" doc:"sitemap_total_url_count is less than what there is"`
	SitemapFinal   string   `parquet:"sitemap_final_url" doc:"its URL after redirects, when it is another one"`
	rights.Verdicts

	Sitemaps []metadata.Counted `parquet:"sitemaps,list" doc:"the sitemaps that robots.txt names: url, kind and count; count null: it cannot be counted"`
}

// Row is a row of the table: the columns of the export, and where the evidence is.
type Row struct {
	Columns
	URLCount *int64     `parquet:"sitemap_url_count,optional"`
	Total    *int64     `parquet:"sitemap_total_url_count,optional"`
	Document string     `parquet:"document"`  // all of what was collected, byte for byte the domain_metadata.json
	Web      string     `parquet:"web,dict"`  // demo, or empty for a real site
	WARC     string     `parquet:"warc,dict"` // the WARC file with the evidence, relative to the table; empty: there is none
	Evidence []Evidence `parquet:"evidence,list"`
}

// Evidence is where a file of evidence is: one gzip member of the row's WARC file.
type Evidence struct {
	File   string `parquet:"file,dict"` // robots.txt, sitemap.xml or homepage.html
	Offset int64  `parquet:"offset"`
	Length int64  `parquet:"length"`
}

// New makes the row of a domain in a partition, without evidence.
func New(p hive.Partition, m metadata.Domain, document []byte) (Row, error) {
	c, err := Query(p, m)
	return Row{Columns: c, URLCount: m.Sitemap.URLCount, Total: m.Sitemap.TotalURLCount, Document: string(document), Web: m.Web}, err
}

// Query returns what is queried about a domain in a partition.
func Query(p hive.Partition, m metadata.Domain) (Columns, error) {
	at, err := time.Parse(time.RFC3339, m.CollectedAt)
	if err != nil {
		return Columns{}, fmt.Errorf("the row of %s: %w", m.DomainID, err)
	}
	c := Columns{
		DomainID: m.DomainID, RegistrableDomain: m.RegistrableDomain, Country: p.Country, Category: p.Category, Date: p.Date, CollectedAt: at,
		RobotsStatus: int32(m.Robots.StatusCode), RobotsExists: m.Robots.Exists, RobotsError: m.Robots.Error, SitemapURLs: m.Robots.SitemapURLs,
		SitemapURL: m.Sitemap.URL, SitemapStatus: int32(m.Sitemap.StatusCode), SitemapExists: m.Sitemap.Exists, SitemapError: m.Sitemap.Error,
		SitemapKind: m.Sitemap.Kind, RecordIndex: -1, HostUsed: m.HostUsed,
		RobotsKind: m.Robots.Kind, RobotsType: m.Robots.ContentType, RobotsLast: int32(m.Robots.LastStatus), RobotsFinal: m.Robots.FinalURL,
		SitemapParsed: m.Sitemap.Parsed || m.Sitemap.LastStatus == 0 && m.Sitemap.Kind != "", // older versions set kind for a sitemap alone
		SitemapType:   m.Sitemap.ContentType, SitemapLast: int32(m.Sitemap.LastStatus), SitemapFinal: m.Sitemap.FinalURL, SitemapPartial: m.Sitemap.Partial,
		Sitemaps: m.Sitemap.Sitemaps,
	}
	if m.Rights != nil {
		c.Verdicts = m.Rights.Verdicts
	}
	if m.Site != nil {
		c.SiteState, c.SiteSince, c.SiteLost = m.Site.State, m.Site.Since, strings.Join(m.Site.Lost, " ")
	}
	if m.Source != nil {
		c.RawFilePath, c.GivenID, c.Liveness = m.Source.RawFilePath, m.Source.DomainID, m.Source.LivenessStatus
		if of := m.Source.Confidence; of != nil {
			c.Confidence = strconv.FormatFloat(*of, 'g', -1, 64)
		}
		c.Hints, c.Method = m.Source.ContentHints, m.Source.DiscoveryMethod
		if m.Source.RecordIndex != nil {
			c.RecordIndex = int64(*m.Source.RecordIndex)
		}
	}
	return c, nil
}

// Partition is the partition of a row.
func (r Row) Partition() hive.Partition {
	return hive.Partition{Country: r.Country, Category: r.Category, Date: r.Date}
}

// Encode returns the Parquet file of rows.
func Encode(rows []Row) ([]byte, error) { return columnar.Encode(rows) }

// Decode returns the rows of a Parquet file that Encode wrote.
func Decode(b []byte) ([]Row, error) { return columnar.Decode[Row](b) }
