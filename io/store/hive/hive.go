// Package hive parses and makes the Hive-style keys of the bucket: those of raw
// files and those of a domain's results. It is pure: a key is a string, it calls
// no store. No promise: see docs/library.md.
package hive

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Success is the suffix of a marker's key: the empty object KEY + Success says
// that KEY and all that belongs to it is complete, and need not be done again.
const Success = ".success"

// Processing is the root of the domains' results, and Metadata the name of a domain's
// metadata.
const (
	Processing = "processing/"
	Metadata   = "domain_metadata.json"
)

// The two roots that raw files are listed under.
const (
	Datasets       = "datasets/"
	legacyDatasets = "research/datasets/"
)

// Partition is one country, category and day of the raw data.
type Partition struct {
	Country  string // ISO 3166-1 alpha-2, lower case
	Category string // [a-z0-9_-]+
	Date     string // YYYY-MM-DD, a valid date
}

// Raw is the parsed key of one raw file.
type Raw struct {
	Key       string
	Partition Partition
	Sequence  int  // the NNNN of raw_NNNN.json
	Legacy    bool // it is in the legacy layout; NewKey is its key in the new one
}

var (
	partition    = `country=([a-z]{2})/category=([a-z0-9_-]+)/`
	date         = `([0-9]{4}-[0-9]{2}-[0-9]{2})`
	sequence     = `([0-9]{4,})`
	rawKey       = regexp.MustCompile(`^` + Datasets + partition + `date=` + date + `/raw_` + sequence + `\.json$`)
	legacyKey    = regexp.MustCompile(`^` + legacyDatasets + partition + date + `_` + sequence + `\.json$`)
	nearMissName = regexp.MustCompile(`^raw[ _-]*[0-9]+([ _-]*\([0-9]+\))?\.jsonl?$|^[0-9]{4}-?[0-9]{2}-?[0-9]{2}[_-][0-9]+\.jsonl?$`)
	markKey      = regexp.MustCompile(`^` + Processing + partition + `date=` + date + `/([a-z0-9._-]+)/` + regexp.QuoteMeta(Metadata+Success) + `$`)
	unsafeRune   = regexp.MustCompile(`[^a-z0-9.-]`)
)

// ParseRaw parses datasets/country=../category=../date=../raw_NNNN.json; for any
// other key it returns false.
func ParseRaw(key string) (Raw, bool) { return parse(rawKey, key, false) }

// ParseLegacy parses
// research/datasets/country=../category=../YYYY-MM-DD_NNNN.json; for any other
// key it returns false.
func ParseLegacy(key string) (Raw, bool) { return parse(legacyKey, key, true) }

func parse(pattern *regexp.Regexp, key string, legacy bool) (Raw, bool) {
	m := pattern.FindStringSubmatch(key)
	if m == nil {
		return Raw{}, false
	}
	if _, err := time.Parse(time.DateOnly, m[3]); err != nil {
		return Raw{}, false
	}
	n, err := strconv.Atoi(m[4])
	if err != nil { // too large for an int
		return Raw{}, false
	}
	return Raw{Key: key, Partition: Partition{m[1], m[2], m[3]}, Sequence: n, Legacy: legacy}, true
}

// NewKey is the key of the file in the datasets/ layout. That of a legacy file
// keeps the digits of its sequence number; any other file has its key already.
func (r Raw) NewKey() string {
	if !r.Legacy {
		return r.Key
	}
	_, name, _ := strings.Cut(r.Key, "/"+r.Partition.Date+"_")
	return Datasets + r.Partition.path() + "/raw_" + name
}

// NearMiss reports whether a key looks like that of a raw file with a mistake in
// it: raw_1.json, RAW_0001.JSON, an invalid date, a country in capitals. Such keys
// are logged; those of raw files, markers and all others are not.
func NearMiss(key string) bool {
	if _, ok := ParseRaw(key); ok {
		return false
	}
	if _, ok := ParseLegacy(key); ok {
		return false
	}
	lower := strings.ToLower(key)
	if !strings.HasPrefix(lower, Datasets) && !strings.HasPrefix(lower, legacyDatasets) {
		return false
	}
	return nearMissName.MatchString(lower[strings.LastIndexByte(lower, '/')+1:])
}

// Prefix is the longest listing prefix that the filters allow under root,
// which is Datasets, legacyDatasets or Processing. It ends at the first empty filter; the
// caller compares the filters after that one with each key.
func Prefix(root string, country, category, date string) string {
	if country == "" {
		return root
	}
	root += "country=" + country + "/"
	if category == "" {
		return root
	}
	root += "category=" + category + "/"
	if date == "" {
		return root
	}
	if strings.HasPrefix(root, legacyDatasets) {
		return root + date + "_"
	}
	return root + "date=" + date + "/"
}

func (p Partition) path() string {
	return "country=" + p.Country + "/category=" + p.Category + "/date=" + p.Date
}

// DomainDir is the prefix of the keys of a domain's results in this partition,
// without a slash at the end. Each character of the domain outside [a-z0-9.-]
// becomes "_".
func (p Partition) DomainDir(registrableDomain string) string {
	return Processing + p.path() + "/" + unsafeRune.ReplaceAllString(registrableDomain, "_")
}

// ParseMark parses the key of the completion mark of a domain's metadata; for any other
// key it returns false. folder is the last element of the domain's DomainDir.
func ParseMark(key string) (p Partition, folder string, ok bool) {
	m := markKey.FindStringSubmatch(key)
	if m == nil {
		return Partition{}, "", false
	}
	if _, err := time.Parse(time.DateOnly, m[3]); err != nil {
		return Partition{}, "", false
	}
	return Partition{m[1], m[2], m[3]}, m[4], true
}
