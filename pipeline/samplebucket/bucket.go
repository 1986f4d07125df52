package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// batch builds the records of one raw file.
type batch struct {
	country, category, date string
	sequence                int
	records                 []json.RawMessage
}

// add appends an ordinary record for each host.
func (b *batch) add(s shape, hosts ...string) *batch {
	for _, host := range hosts {
		n := len(b.records)
		b.records = append(b.records, encode(newRecord(urlOf(host, b.category, n), b.country, b.category, s, n)))
	}
	return b
}

// addRaw appends handwritten records.
func (b *batch) addRaw(texts ...string) *batch {
	for _, text := range texts {
		b.records = append(b.records, json.RawMessage(text))
	}
	return b
}

// meta describes the batch correctly; callers change it for files with a wrong head.
func (b *batch) meta(s shape) meta {
	m := meta{
		DatasetID:   fmt.Sprintf("%s-%s-%s-%04d", b.country, b.category, b.date, b.sequence),
		Country:     strings.ToUpper(b.country),
		Category:    b.category,
		RecordCount: len(b.records),
	}
	if s == full {
		m.DiscoveredAt = b.date + "T10:30:00Z"
		m.ResearchMethods = []string{"google_search", "crtsh"}
		m.Queries = []string{"URL discovery batch"}
		m.Engine = &engine{Name: "research-service", Version: "2.0.0"}
	}
	return m
}

// key is the object's name in the present layout.
func (b *batch) key() string {
	return fmt.Sprintf("datasets/country=%s/category=%s/date=%s/raw_%04d.json", b.country, b.category, b.date, b.sequence)
}

// join writes the dataset with meta before or after the records.
func join(m meta, records []json.RawMessage, metaLast bool) []byte {
	metaPart := append([]byte(`"meta":`), encode(m)...)
	recordPart := slices.Concat([]byte(`"records":[`), bytes.Join(asBytes(records), []byte(",")), []byte("]"))
	parts := [][]byte{metaPart, recordPart}
	if metaLast {
		slices.Reverse(parts)
	}
	return slices.Concat([]byte("{"), bytes.Join(parts, []byte(",")), []byte("}\n"))
}

func asBytes(records []json.RawMessage) [][]byte {
	all := make([][]byte, len(records))
	for i, r := range records {
		all[i] = r
	}
	return all
}

func pretty(compact []byte) []byte {
	var b bytes.Buffer
	if err := json.Indent(&b, compact, "", "  "); err != nil {
		panic(err) // hand-written records must be JSON
	}
	return b.Bytes()
}

// bucket returns every object of the sample bucket by key.
func bucket() map[string][]byte {
	objects := map[string][]byte{}

	b := &batch{country: "sg", category: "news", date: "2026-01-28", sequence: 1}
	b.addRaw( // two records of the smallest form
		`{"raw_url":"https://www.mom.gov.sg/newsroom","normalized_domain":"mom.gov.sg","domain_id":"gov:sg:mom.gov.sg"}`,
		`{"raw_url":"https://www.moh.gov.sg/news","normalized_domain":"moh.gov.sg","domain_id":"gov:sg:moh.gov.sg"}`,
	).add(brief, sgNews...).add(brief, sgGov[2:16]...).add(brief, sgNews[:6]...).add(brief, sgGov[:2]...)
	objects[b.key()] = pretty(join(b.meta(brief), b.records, false))

	b = &batch{country: "sg", category: "news", date: "2026-01-28", sequence: 2}
	b.add(full, sgGov[10:]...).add(full, sgNews[3:]...).add(full, world...).add(full, sgEdu[:2]...)
	objects[b.key()] = join(b.meta(full), b.records, false)

	b = &batch{country: "sg", category: "policy", date: "2026-01-28", sequence: 1}
	b.add(full, sgGov...).add(bare, sgGov[:4]...).addRaw(
		// Hosts at a public suffix: www.gov.sg is a registrable domain, gov.sg is the
		// suffix itself.
		`{"raw_url":"https://www.gov.sg/explainers"}`,
		`{"raw_url":"https://gov.sg/"}`,
		// Invalid domain_ids, replaced by derived ones: authority, case, a host that is
		// not registrable, a missing part, an IP address, a number.
		`{"raw_url":"https://www.mom.gov.sg/acts","normalized_domain":"mom.gov.sg","domain_id":"government:sg:mom.gov.sg"}`,
		`{"raw_url":"https://www.moh.gov.sg/policies","normalized_domain":"moh.gov.sg","domain_id":"gov:SG:moh.gov.sg"}`,
		`{"raw_url":"https://www.mof.gov.sg/policies","normalized_domain":"mof.gov.sg","domain_id":"gov:sg:www.mof.gov.sg"}`,
		`{"raw_url":"https://www.csa.gov.sg/legislation","domain_id":"gov:sg"}`,
		`{"raw_url":"https://www.singstat.gov.sg/","domain_id":"gov:sg:192.0.2.7"}`,
		`{"raw_url":"https://www.nparks.gov.sg/","domain_id":17}`,
		// A normalized_domain that disagrees with its domain_id.
		`{"raw_url":"https://www.mti.gov.sg/policies","normalized_domain":"www.mti.gov.sg","domain_id":"gov:sg:mti.gov.sg"}`,
		// Invalid optional fields: logged and ignored.
		`{"raw_url":"https://www.mnd.gov.sg/policy","normalized_domain":"mnd.gov.sg","domain_id":"gov:sg:mnd.gov.sg","source_type":"gov","confidence":1.7}`,
		`{"raw_url":"https://www.mha.gov.sg/policy","normalized_domain":"mha.gov.sg","domain_id":"gov:sg:mha.gov.sg","source_type":"ministry","confidence":0.8}`,
		`{"raw_url":"https://www.lta.gov.sg/policy","domain_id":"gov:sg:lta.gov.sg","discovery_method":"hearsay","content_hints":"policy","liveness_status":"asleep"}`,
	).add(full, world[:3]...)
	objects[b.key()] = pretty(join(b.meta(full), b.records, false))

	b = &batch{country: "kr", category: "news", date: "2026-01-28", sequence: 1}
	b.add(full, krNews...).addRaw(
		`{"normalized_domain":"example.com"}`,
		`{"raw_url":"http://192.0.2.10/news"}`,
		`{"raw_url":"https://[2001:db8::1]/"}`,
		`{"raw_url":"https://intranet/news"}`,
		`{"raw_url":"https://press.moe.internal/releases"}`,
		`"https://www.yna.co.kr/"`,
		`null`,
		`{"raw_url":42}`,
		`{"raw_url":"not a url"}`,
	).add(full, krGov[:10]...).addRaw(
		`{"raw_url":"https://청와대.한국/","normalized_domain":"xn--vk1b187a8ue.xn--3e0b707e"}`,
		`{"raw_url":"HTTPS://WWW.YNA.CO.KR/view/"}`,
		`{"raw_url":"https://www.hani.co.kr./arti"}`,
	).add(full, krNews[:8]...).add(full, world[0], world[5])
	m := b.meta(full)
	m.Country = "SG" // the country in the path counts
	objects[b.key()] = join(m, b.records, false)

	b = &batch{country: "kr", category: "education", date: "2026-01-29", sequence: 1}
	b.add(full, krEdu...).add(full, krGov...).add(full, krEdu[:6]...).add(full, world[3])
	objects[b.key()] = join(b.meta(full), b.records, true)

	b = &batch{country: "gb", category: "policy", date: "2026-01-28", sequence: 1}
	b.add(full, gbGov...).add(full, gbGov[:10]...).add(full, world...)
	objects[b.key()] = pretty(join(b.meta(full), b.records, false))

	b = &batch{country: "gb", category: "news", date: "2026-01-29", sequence: 1}
	b.add(brief, gbNews...).add(brief, gbGov[:8]...).addRaw(
		// Both are valid and kept: one domain to fetch under two identities.
		`{"raw_url":"https://www.reuters.com/world/uk/","normalized_domain":"reuters.com","domain_id":"com:us:reuters.com"}`,
		`{"raw_url":"https://www.theguardian.com/international","normalized_domain":"theguardian.com","domain_id":"org:gb:theguardian.com"}`,
	).add(brief, gbNews[:9]...).add(brief, world[5], world[2], sgNews[0])
	m = b.meta(brief)
	m.RecordCount += 5 // logged, not fatal
	objects[b.key()] = join(m, b.records, false)

	b = &batch{country: "gb", category: "education", date: "2026-01-29", sequence: 1}
	b.add(bare, gbEdu...).add(bare, gbEdu[:5]...)
	objects[b.key()] = join(b.meta(brief), b.records, false)

	b = &batch{country: "gb", category: "education", date: "2026-01-29", sequence: 2}
	b.add(full, gbTruncated...).add(full, gbEdu[:8]...)
	whole := pretty(join(b.meta(full), b.records, false))
	cut := bytes.LastIndex(whole, []byte(`"domain_id"`)) + len(`"domain_id": "edu:`)
	objects[b.key()] = whole[:cut]

	b = &batch{country: "de", category: "news", date: "2026-01-28", sequence: 1}
	b.add(full, deNews...).add(full, deGov[:8]...).addRaw(
		`{"raw_url":"https://www.münchen.de/rathaus","normalized_domain":"xn--mnchen-3ya.de","domain_id":"other:de:xn--mnchen-3ya.de"}`,
		`{"raw_url":"https://xn--mnchen-3ya.de/"}`,
	).add(full, deNews[4:]...).add(full, world[4:]...)
	objects[b.key()] = join(b.meta(full), b.records, false)

	b = &batch{country: "de", category: "education", date: "2026-01-29", sequence: 1}
	b.add(brief, deEdu...).add(brief, deGov...).addRaw(
		// Several hosts, one registrable domain.
		`{"raw_url":"https://www.bmj.bund.de/"}`,
		`{"raw_url":"https://www.bsi.bund.de/"}`,
	).add(brief, deEdu[:7]...).add(brief, world[0], world[3])
	objects[b.key()] = pretty(join(b.meta(brief), b.records, false))

	b = &batch{country: "sg", category: "news", date: "2026-01-27", sequence: 1}
	b.add(full, sgNews[:6]...).add(full, sgEdu...).add(full, sgGov[:4]...)
	objects["research/datasets/country=sg/category=news/2026-01-27_0001.json"] = pretty(join(b.meta(full), b.records, false))

	// Objects that are no raw files.
	b = &batch{country: "sg", category: "news", date: "2026-01-28", sequence: 1}
	b.add(brief, "www.visitsingapore.com")
	objects["datasets/country=sg/category=news/date=2026-01-28/raw_1.json"] = join(b.meta(brief), b.records, false)
	objects["datasets/country=sg/category=news/date=2026-01-28/raw_metadata.json"] =
		[]byte(`{"country":"SG","category":"news","date":"2026-01-28","files":["raw_0001.json","raw_0002.json"]}` + "\n")
	objects["datasets/country=sg/.DS_Store"] = []byte("\x00\x00\x00\x01Bud1\x00\x00")
	return objects
}
