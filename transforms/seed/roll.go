package seed

import (
	"fmt"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/transforms/lane"
)

// roll is a lane's hosts with who asks for them.
type roll struct {
	files  []rollFile
	byKey  map[string]int32
	labels []string
	label  map[string]int16
	hosts  []host
	byName map[string]int32
}

type rollFile struct {
	key    string
	in     hive.Partition
	broken bool
}

type host struct {
	name string
	asks []ask
}

// ask is one file's first mention of a domain id.
type ask struct {
	file  int32
	label int16
	index int
}

func newRoll() *roll {
	return &roll{byKey: map[string]int32{}, label: map[string]int16{}, byName: map[string]int32{}}
}

// dropBroken takes back what broken files named, once all batches are read.
func (r *roll) dropBroken() {
	r.byName = nil // its work is done
	if !slices.ContainsFunc(r.files, func(f rollFile) bool { return f.broken }) {
		return
	}
	r.hosts = slices.DeleteFunc(r.hosts, func(h host) bool {
		return !slices.ContainsFunc(h.asks, func(a ask) bool { return !r.files[a.file].broken })
	})
	for i := range r.hosts {
		h := &r.hosts[i]
		h.asks = slices.DeleteFunc(h.asks, func(a ask) bool { return r.files[a.file].broken })
	}
}

func (r *roll) add(b lane.Batch) error {
	file, ok := r.byKey[b.File]
	if !ok {
		raw, ok := hive.ParseRaw(b.File)
		if !ok {
			return fmt.Errorf("a batch names %q, which is no raw file", b.File)
		}
		file = int32(len(r.files))
		r.files = append(r.files, rollFile{key: b.File, in: raw.Partition})
		r.byKey[b.File] = file
	}
	if b.Broken {
		r.files[file].broken = true
	}
	for _, m := range b.Mentions {
		label, ok := r.label[m.Label]
		if !ok {
			label = int16(len(r.labels))
			r.labels = append(r.labels, strings.Clone(m.Label))
			r.label[r.labels[label]] = label
		}
		at, ok := r.byName[m.Host]
		if !ok {
			at = int32(len(r.hosts))
			r.hosts = append(r.hosts, host{name: strings.Clone(m.Host)}) // see lane.Batch
			r.byName[r.hosts[at].name] = at
		}
		h := &r.hosts[at]
		a := ask{file, label, m.Index}
		// A file that was read again after a store's failure names its domains twice.
		if i := slices.IndexFunc(h.asks, func(o ask) bool { return o.file == file && o.label == label }); i >= 0 {
			h.asks[i].index = min(h.asks[i].index, a.index)
			continue
		}
		h.asks = append(h.asks, a)
	}
	return nil
}
