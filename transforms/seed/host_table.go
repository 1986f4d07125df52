package seed

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/seed/domain"
	"github.com/newsfork/seed-engine/transforms/seed/metadata"
	"github.com/newsfork/seed-engine/transforms/seed/rawfile"
	"github.com/newsfork/seed-engine/transforms/seed/table"
)

// hostTable is what a lane has to visit: its hosts, and the files that name them.
type hostTable struct {
	files  []tableFile
	byKey  map[string]int32
	labels []string
	label  map[string]int16
	hosts  []host
	byName map[string]int32
}

type tableFile struct {
	key    string
	in     hive.Partition
	broken bool
}

type host struct {
	name    string
	records []hostRecord
}

// hostRecord is a file's first record of a domain id.
type hostRecord struct {
	file   int32
	label  int16
	mark   mark   // of the host in the file's partition
	index  int    // of the record in its file
	source string // what else it says, see sourceText
}

func newHostTable() *hostTable {
	return &hostTable{byKey: map[string]int32{}, label: map[string]int16{}, byName: map[string]int32{}}
}

// dropBroken removes the records of broken files, after all batches were read.
func (t *hostTable) dropBroken() {
	t.byName = nil // no more hosts are added
	if !slices.ContainsFunc(t.files, func(f tableFile) bool { return f.broken }) {
		return
	}
	t.hosts = slices.DeleteFunc(t.hosts, func(h host) bool {
		return !slices.ContainsFunc(h.records, func(r hostRecord) bool { return !t.files[r.file].broken })
	})
	for i := range t.hosts {
		h := &t.hosts[i]
		h.records = slices.DeleteFunc(h.records, func(r hostRecord) bool { return t.files[r.file].broken })
	}
}

func (t *hostTable) add(b lane.Batch) error {
	file, ok := t.byKey[b.File]
	if !ok {
		in, _, ok := placeOf(b.File)
		if !ok {
			return fmt.Errorf("a batch has the file %q, which is no raw file", b.File)
		}
		file = int32(len(t.files))
		t.files = append(t.files, tableFile{key: b.File, in: in})
		t.byKey[b.File] = file
	}
	if b.Broken {
		t.files[file].broken = true
	}
	records, err := b.Records()
	if err != nil {
		return err
	}
	for _, m := range records {
		label, ok := t.label[m.Label]
		if !ok {
			label = int16(len(t.labels))
			t.labels = append(t.labels, strings.Clone(m.Label))
			t.label[t.labels[label]] = label
		}
		at, ok := t.byName[m.Host]
		if !ok {
			at = int32(len(t.hosts))
			t.hosts = append(t.hosts, host{name: strings.Clone(m.Host)}) // see Batch.Records
			t.byName[t.hosts[at].name] = at
		}
		h := &t.hosts[at]
		r := hostRecord{file: file, label: label, index: m.Index, source: strings.Clone(m.Source)}
		// A file that was read again after an error of the store has its records twice.
		if i := slices.IndexFunc(h.records, func(o hostRecord) bool { return o.file == file && o.label == label }); i >= 0 {
			if o := &h.records[i]; r.index < o.index {
				o.index, o.source = r.index, r.source
			}
			continue
		}
		h.records = append(h.records, r)
	}
	return nil
}

// request is the need of one partition for a host. Its values are those of the first record.
type request struct {
	in      hive.Partition
	id      string // domain id of the first record
	file    string
	message bool // a message named the domain: nobody knows the index
	index   int
	source  string
	mark    mark
	state   state
	notOpen bool       // its row says that the site is not open
	row     *table.Row // that is not in a segment yet
}

// record returns the index of the request's record in its file, nil if it is not known.
func (q request) record() *int {
	if q.message {
		return nil
	}
	return &q.index
}

// state is the state of a partition's request for a host. For a domain id with several
// requests the highest state is counted, so that a success does not hide a failure.
type state int

const (
	alreadyDone  state = iota // by an earlier run or try
	collected                 // by this run
	deadLettered              // it has a dead letter
	held                      // the row of an earlier visit stays, because the site is not open
	unfinished                // the files that request it stay open
)

// requests groups a host's records by partition. A request has the values of the first
// record of its partition, by path and then index.
func (t *hostTable) requests(h host) []request {
	records := slices.Clone(h.records)
	slices.SortFunc(records, func(a, b hostRecord) int {
		return cmp.Or(strings.Compare(t.files[a.file].key, t.files[b.file].key), cmp.Compare(a.index, b.index))
	})
	var out []request
	for _, r := range records {
		f := t.files[r.file]
		if !slices.ContainsFunc(out, func(q request) bool { return q.in == f.in }) {
			_, from, _ := placeOf(f.key)
			out = append(out, request{in: f.in, id: t.labels[r.label] + ":" + h.name, file: from, message: isMessage(f.key), index: r.index, source: r.source, mark: r.mark, state: unfinished})
		}
	}
	return out
}

// byPartition returns the hosts that each partition requests, as indices.
func (t *hostTable) byPartition() map[hive.Partition][]int32 {
	by := map[hive.Partition][]int32{}
	for i, h := range t.hosts {
		for _, r := range h.records {
			in := t.files[r.file].in
			if of := by[in]; len(of) == 0 || of[len(of)-1] != int32(i) {
				by[in] = append(of, int32(i))
			}
		}
	}
	return by
}

// sameID begins the text of a record whose domain_id is the one that counts: most are.
const sameID = "="

// sourceText is what a record says besides its domain, in the form in which it travels: members
// of a JSON object.
func sourceText(r rawfile.Record, d domain.Domain) string {
	text, same := r.Says, ""
	add := func(name, value string) {
		b, _ := json.Marshal(value) // a string always encodes
		text = strings.TrimSuffix(`"`+name+`":`+string(b)+","+text, ",")
	}
	switch r.DomainID {
	case "":
	case d.ID:
		same = sameID
	default:
		add("domain_id", r.DomainID[:min(len(r.DomainID), rawfile.MaxSays)])
	}
	if d.Host != "" && d.Host != d.Registrable && d.Host != "www."+d.Registrable {
		add("host", d.Host)
	}
	return same + text
}

// source is what a sourceText says.
type source struct {
	metadata.Source
	Host string `json:"host"` // of the URL, where it is neither the domain nor its www.
}

// sourceOf returns the source that a sourceText describes, for a domain with that id.
func sourceOf(text, id string) source {
	var s source
	text, same := strings.CutPrefix(text, sameID)
	if json.Unmarshal([]byte("{"+text+"}"), &s) != nil { // of this program, so it is JSON
		s = source{}
	}
	if same {
		s.DomainID = id
	}
	return s
}

// deadLast puts the hosts last that all of their records call dead.
func (t *hostTable) deadLast() {
	dead := func(h host) bool {
		return !slices.ContainsFunc(h.records, func(r hostRecord) bool { return !strings.Contains(r.source, rawfile.SaysDead) })
	}
	var last []host
	t.hosts = slices.DeleteFunc(t.hosts, func(h host) bool {
		if !dead(h) {
			return false
		}
		last = append(last, h)
		return true
	})
	t.hosts = append(t.hosts, last...)
}
