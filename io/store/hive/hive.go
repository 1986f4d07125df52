// Package hive reads and writes the Hive-style keys of the bucket: where raw
// files lie, where the results of a domain go. It is pure: a key is a string,
// no store is asked.
package hive

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Success is what a finished object's key is followed by: the empty object
// KEY + Success says that KEY and all that belongs to it is done (design 1.1.0,
// idempotency by marker).
const Success = ".success"

// The two roots that raw files are listed under.
const (
	Datasets       = "datasets/"
	LegacyDatasets = "research/datasets/"
)

// Partition is one country, category and day of the raw data.
type Partition struct {
	Country  string // ISO 3166-1 alpha-2, lower case
	Category string // [a-z0-9_-]+
	Date     string // YYYY-MM-DD, a day of the calendar
}

// Raw is the key of one raw file, taken apart.
type Raw struct {
	Key       string
	Partition Partition
	Sequence  int  // the NNNN of raw_NNNN.json
	Legacy    bool // it lies in the legacy layout; NewKey says where it belongs
}

var (
	partition  = `country=([a-z]{2})/category=([a-z0-9_-]+)/`
	date       = `([0-9]{4}-[0-9]{2}-[0-9]{2})`
	sequence   = `([0-9]{4,})`
	rawKey     = regexp.MustCompile(`^` + Datasets + partition + `date=` + date + `/raw_` + sequence + `\.json$`)
	legacyKey  = regexp.MustCompile(`^` + LegacyDatasets + partition + date + `_` + sequence + `\.json$`)
	looksRaw   = regexp.MustCompile(`^raw[ _-]*[0-9]+([ _-]*\([0-9]+\))?\.jsonl?$|^[0-9]{4}-?[0-9]{2}-?[0-9]{2}[_-][0-9]+\.jsonl?$`)
	unsafeRune = regexp.MustCompile(`[^a-z0-9.-]`)
)

// ParseRaw takes apart datasets/country=../category=../date=../raw_NNNN.json.
// Any other key is false.
func ParseRaw(key string) (Raw, bool) { return parse(rawKey, key, false) }

// ParseLegacy takes apart
// research/datasets/country=../category=../YYYY-MM-DD_NNNN.json. Any other key
// is false.
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
	if err != nil { // more digits than an int holds
		return Raw{}, false
	}
	return Raw{Key: key, Partition: Partition{m[1], m[2], m[3]}, Sequence: n, Legacy: legacy}, true
}

// NewKey is the key of the file in the datasets/ layout: for a legacy file its
// new place, with the digits of its sequence number as they are, for any other
// the key it has.
func (r Raw) NewKey() string {
	if !r.Legacy {
		return r.Key
	}
	_, name, _ := strings.Cut(r.Key, "/"+r.Partition.Date+"_")
	return Datasets + r.Partition.path() + "/raw_" + name
}

// NearMiss says that a key looks as if someone meant a raw file by it and got
// the name wrong: raw_1.json, RAW_0001.JSON, a day that is not in the calendar,
// a country in capitals. Such keys are worth a line in the log; raw files
// themselves, their markers and everything else are not.
func NearMiss(key string) bool {
	if _, ok := ParseRaw(key); ok {
		return false
	}
	if _, ok := ParseLegacy(key); ok {
		return false
	}
	lower := strings.ToLower(key)
	if !strings.HasPrefix(lower, Datasets) && !strings.HasPrefix(lower, LegacyDatasets) {
		return false
	}
	return looksRaw.MatchString(lower[strings.LastIndexByte(lower, '/')+1:])
}

// Prefix is the longest listing prefix that the filters allow under root,
// which is Datasets or LegacyDatasets. An empty filter ends it: what follows
// cannot shorten a listing and is for the caller to compare.
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
	if strings.HasPrefix(root, LegacyDatasets) {
		return root + date + "_"
	}
	return root + "date=" + date + "/"
}

func (p Partition) path() string {
	return "country=" + p.Country + "/category=" + p.Category + "/date=" + p.Date
}

// DomainDir is where the results of a domain in this partition lie, without a
// slash at the end. Whatever is not [a-z0-9.-] in the domain becomes "_".
func (p Partition) DomainDir(registrableDomain string) string {
	return "processing/" + p.path() + "/" + unsafeRune.ReplaceAllString(registrableDomain, "_")
}
