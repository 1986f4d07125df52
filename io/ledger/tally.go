package ledger

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"time"
)

// Counts are numbers by name. The nil map is ready for Add by a Tally.
type Counts map[string]int64

func (c *Counts) add(o Counts) {
	if *c == nil && len(o) > 0 {
		*c = make(Counts, len(o))
	}
	for k, n := range o {
		(*c)[k] += n
	}
}

// Minus returns c minus o, without the counts that are equal.
func (c Counts) Minus(o Counts) Counts {
	d := Counts{}
	for k, n := range c {
		if n != o[k] {
			d[k] = n - o[k]
		}
	}
	return d
}

// HTTP sums what the fetcher did.
type HTTP struct {
	Requests int64  `json:"requests"`
	Bytes    int64  `json:"bytes"` // of bodies, as received
	Retries  int64  `json:"retries"`
	Absent   int64  `json:"absent,omitempty"` // of by_status 404 and 410: what need not be there
	ByStatus Counts `json:"by_status"`        // "200": n
	Failures Counts `json:"failures"`         // by the kinds of package web
	// Examples are a few URLs of each kind of failure and each status from 400 on.
	Examples Examples `json:"examples,omitempty"`
}

// Class counts the answers whose status begins with a digit.
func (h HTTP) Class(digit byte) (n int64) {
	for status, k := range h.ByStatus {
		if status != "" && status[0] == digit {
			n += k
		}
	}
	return n
}

// Unanswered counts the requests that failed below HTTP.
func (h HTTP) Unanswered() (n int64) {
	for _, k := range h.Failures {
		n += k
	}
	return n
}

// Tally is the sum of everything that a run report needs. The zero value is an empty
// sum. Addition is commutative and associative, so that lanes, workers and Combine
// stages may add in any order.
type Tally struct {
	Counts      Counts    `json:"counts,omitempty"` // by the names of Job.Counts, and more
	HTTP        HTTP      `json:"http"`
	Store       Counts    `json:"store,omitempty"`        // calls by kind
	StoreBytes  Traffic   `json:"store_bytes,omitzero"`   // of objects
	Timings     Histogram `json:"timings"`                // time a domain
	DeadLetters Counts    `json:"dead_letters,omitempty"` // by kind
	Warnings    []Warning `json:"warnings,omitempty"`     // in order
}

// Traffic is how many bytes went to and came from a store.
type Traffic struct {
	Read    int64 `json:"read"`
	Written int64 `json:"written"`
}

// Count adds n to one of the counts.
func (t *Tally) Count(name string, n int64) { t.Counts.add(Counts{name: n}) }

// DeadLetter counts one dead letter, by its kind and in the total.
func (t *Tally) DeadLetter(kind string) {
	t.DeadLetters.add(Counts{kind: 1})
	t.Count("dead_letters", 1)
}

// Warn adds n to a warning; field is "" if the warning is about the whole source.
func (t *Tally) Warn(kind, source, field string, n int64) {
	t.Warnings = addWarnings(t.Warnings, []Warning{{kind, source, field, n}})
}

// Add adds o to t; o is not changed and shares nothing with t afterwards.
func (t *Tally) Add(o Tally) {
	t.Counts.add(o.Counts)
	t.HTTP.Requests += o.HTTP.Requests
	t.HTTP.Bytes += o.HTTP.Bytes
	t.HTTP.Retries += o.HTTP.Retries
	t.HTTP.Absent += o.HTTP.Absent
	t.HTTP.ByStatus.add(o.HTTP.ByStatus)
	t.HTTP.Failures.add(o.HTTP.Failures)
	t.HTTP.Examples.add(o.HTTP.Examples)
	t.Store.add(o.Store)
	t.StoreBytes.Read += o.StoreBytes.Read
	t.StoreBytes.Written += o.StoreBytes.Written
	t.Timings.add(o.Timings)
	t.DeadLetters.add(o.DeadLetters)
	t.Warnings = addWarnings(t.Warnings, o.Warnings)
}

// MarshalBinary encodes the tally as JSON. Beam sends tallies between workers so.
func (t Tally) MarshalBinary() ([]byte, error) { return json.Marshal(t) }

// UnmarshalBinary is the inverse of MarshalBinary.
func (t *Tally) UnmarshalBinary(b []byte) error {
	var n Tally
	if err := json.Unmarshal(b, &n); err != nil {
		return fmt.Errorf("not a tally: %w", err)
	}
	*t = n
	return nil
}

// Histogram counts durations in fixed buckets: eight for each doubling, from one
// millisecond on, each 9 % wide. So histograms of all workers can be added and give
// quantiles to within 5 %. The zero value is empty.
type Histogram struct {
	Count   int64         `json:"count"`
	Sum     float64       `json:"sum_s"`
	Max     float64       `json:"max_s"`
	Buckets map[int]int64 `json:"buckets,omitempty"` // by bucket number, empty ones left out
}

const (
	bucketsAnOctave = 8
	smallest        = 1e-3 // seconds, the upper end of bucket 0
	lastBucket      = 180  // over an hour and a half
)

// Observe adds one duration.
func (h *Histogram) Observe(d time.Duration) {
	s := max(0, d.Seconds())
	b := 0
	if s > smallest {
		b = min(lastBucket, int(math.Ceil(bucketsAnOctave*math.Log2(s/smallest))))
	}
	h.add(Histogram{Count: 1, Sum: s, Max: s, Buckets: map[int]int64{b: 1}})
}

func (h *Histogram) add(o Histogram) {
	h.Count += o.Count
	h.Sum += o.Sum
	h.Max = max(h.Max, o.Max)
	if h.Buckets == nil && len(o.Buckets) > 0 {
		h.Buckets = maps.Clone(o.Buckets)
		return
	}
	for b, n := range o.Buckets {
		h.Buckets[b] += n
	}
}

// mean is in seconds; 0 when nothing was observed.
func (h Histogram) mean() float64 {
	if h.Count == 0 {
		return 0
	}
	return h.Sum / float64(h.Count)
}

// quantile returns the q-quantile (0 < q ≤ 1) in seconds by the nearest rank;
// 0 when nothing was observed.
func (h Histogram) quantile(q float64) float64 {
	rank := max(1, int64(math.Ceil(q*float64(h.Count))))
	for b, seen := 0, int64(0); b <= lastBucket; b++ {
		if seen += h.Buckets[b]; seen >= rank {
			// The middle of the bucket, by ratio.
			return min(h.Max, smallest*math.Exp2((float64(b)-0.5)/bucketsAnOctave))
		}
	}
	return h.Max
}

// UnmarshalJSON refuses buckets that Observe cannot have written.
func (h *Histogram) UnmarshalJSON(b []byte) error {
	type plain Histogram
	var p plain
	if err := json.Unmarshal(b, &p); err != nil {
		return err
	}
	for i, n := range p.Buckets {
		if i < 0 || i > lastBucket || n < 0 {
			return fmt.Errorf("histogram bucket %d has %d: buckets go from 0 to %d and counts are not negative", i, n, lastBucket)
		}
	}
	*h = Histogram(p)
	return nil
}
