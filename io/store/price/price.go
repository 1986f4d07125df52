// Package price says what the provider of a store charges for calls, storage and
// traffic, by a list of prices. No promise: see docs/library.md.
package price

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// List is the price list of one provider: dollars for a million calls of each class,
// for a GB (10⁹ bytes) that is kept for a month, and for a GB that leaves the
// provider's network.
type List struct {
	Name    string  `json:"name" yaml:"name"`
	Source  string  `json:"source" yaml:"source"` // where the figures are from
	AsOf    string  `json:"as_of" yaml:"as_of"`   // when they were read there
	Reads   float64 `json:"reads_million" yaml:"reads_million"`
	Lists   float64 `json:"lists_million" yaml:"lists_million"`
	Writes  float64 `json:"writes_million" yaml:"writes_million"`
	Deletes float64 `json:"deletes_million" yaml:"deletes_million"`
	Storage float64 `json:"storage_gb_month" yaml:"storage_gb_month"`
	Egress  float64 `json:"egress_gb" yaml:"egress_gb"`
}

// Lists are price lists by the scheme of the stores' URLs: s3, r2, gs, mem, or file for
// a directory.
type Lists map[string]List

// Public are the public list prices: the first tier of standard storage, without free
// amounts, discounts and taxes.
func Public() Lists {
	return Lists{
		"s3": {Name: "Amazon S3 Standard, us-east-1, list price", Source: "https://aws.amazon.com/s3/pricing/", AsOf: "2026-03",
			Reads: 0.40, Lists: 5, Writes: 5, Deletes: 0, Storage: 0.023, Egress: 0.09},
		"r2": {Name: "Cloudflare R2 Standard, list price", Source: "https://developers.cloudflare.com/r2/pricing/", AsOf: "2026-08",
			Reads: 0.36, Lists: 4.50, Writes: 4.50, Deletes: 0, Storage: 0.015, Egress: 0},
		"gs": {Name: "Google Cloud Storage Standard, us-east1, list price", Source: "https://cloud.google.com/storage/pricing-examples", AsOf: "2026-11, from a stored copy",
			Reads: 0.40, Lists: 5, Writes: 5, Deletes: 0, Storage: 0.020, Egress: 0.12},
	}
}

// Scheme returns the scheme under which a store's prices are listed.
func Scheme(storeURL string) string {
	scheme, _, ok := strings.Cut(storeURL, "://")
	if !ok {
		return "file"
	}
	return scheme
}

// Check refuses lists that cannot be prices.
func (l Lists) Check() error {
	if len(l) == 0 {
		return errors.New("it lists no prices; write a store's scheme (s3, r2, gs, file) and below it its prices")
	}
	for scheme, p := range l {
		switch scheme {
		case "s3", "r2", "gs", "file", "mem":
		default:
			return fmt.Errorf("%q is no scheme of a store; use s3, r2, gs, mem or file", scheme)
		}
		for name, v := range map[string]float64{"reads_million": p.Reads, "lists_million": p.Lists, "writes_million": p.Writes, "deletes_million": p.Deletes, "storage_gb_month": p.Storage, "egress_gb": p.Egress} {
			if v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("%s: %s is %g; use dollars, 0 or more", scheme, name, v)
			}
		}
	}
	return nil
}

// Calls are calls to a store by class.
type Calls struct {
	Reads   int64 `json:"reads"` // of objects and of their descriptions
	Lists   int64 `json:"lists"` // pages of up to 1000 objects
	Writes  int64 `json:"writes"`
	Deletes int64 `json:"deletes"`
}

// Classes sums calls by kind, as store.Calls names them, by class.
func Classes(kinds map[string]int64) Calls {
	return Calls{Reads: kinds["head"] + kinds["open"], Lists: kinds["list"], Writes: kinds["put"] + kinds["put_if_absent"], Deletes: kinds["delete"]}
}

// Price is a price in dollars.
type Price struct {
	Calls   float64 `json:"calls"`
	Storage float64 `json:"storage_month"` // of what was written, for each month that it is kept
	Egress  float64 `json:"egress"`        // of what was read, if it left the provider's network
}

// Of returns the price of calls, of bytes that are kept, and of bytes that were read.
func (p List) Of(c Calls, kept, read int64) Price {
	const million, gb = 1e6, 1e9
	return Price{
		Calls:   (float64(c.Reads)*p.Reads + float64(c.Lists)*p.Lists + float64(c.Writes)*p.Writes + float64(c.Deletes)*p.Deletes) / million,
		Storage: float64(kept) / gb * p.Storage,
		Egress:  float64(read) / gb * p.Egress,
	}
}
