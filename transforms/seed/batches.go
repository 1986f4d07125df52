package seed

import "github.com/newsfork/seed-engine/transforms/lane"

const (
	// maxBatch is the maximum number of URL records in one element of the shuffle.
	maxBatch = 1024
	// maxBuffered is the maximum number of bytes of URL records that wait for their
	// batch to fill, over all lanes.
	maxBuffered = 16 << 20
	// recordSize is about what a buffered record takes besides the text of its strings.
	recordSize = 64
)

// batches collects the URL records of one raw file into batches, one for each lane. Its
// memory does not depend on the number of lanes.
type batches struct {
	file  string
	lanes []laneBatch
	size  int // bytes of the records in lanes, about
	emit  func(int, lane.Batch)
}

type laneBatch struct {
	records []lane.URLRecord
	emitted bool // the lane has records of the file
}

// to begins a file: its batches go to emit.
func (b *batches) to(file string, lanes int, emit func(int, lane.Batch)) *batches {
	if len(b.lanes) != lanes {
		b.lanes = make([]laneBatch, lanes)
	}
	clear(b.lanes) // of a file that failed
	b.file, b.size, b.emit = file, 0, emit
	return b
}

// add adds a record to the lane of its host.
func (b *batches) add(r lane.URLRecord) {
	n := lane.Of(r.Host, len(b.lanes))
	b.size += sizeOf(r)
	to := &b.lanes[n]
	to.records = append(to.records, r) // without a capacity: most files have records in few of many lanes
	switch {
	case len(to.records) == maxBatch:
		b.flushLane(n)
	case b.size > maxBuffered:
		b.flush()
	}
}

func sizeOf(r lane.URLRecord) int {
	return len(r.Host) + len(r.Label) + len(r.Source) + recordSize
}

func (b *batches) flush() {
	for n := range b.lanes {
		b.flushLane(n)
	}
}

func (b *batches) flushLane(n int) {
	of := &b.lanes[n]
	if len(of.records) == 0 {
		return
	}
	for _, r := range of.records {
		b.size -= sizeOf(r)
	}
	b.emit(n, lane.NewBatch(b.file, of.records))
	of.records, of.emitted = nil, true
}

// void tells the lanes that have records of the file to drop them.
func (b *batches) void() {
	for n, of := range b.lanes {
		if of.emitted {
			b.emit(n, lane.Batch{File: b.file, Broken: true})
		}
	}
}
