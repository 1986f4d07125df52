package lane

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/io/ledger"
)

// A terminal shows no warning about a single input, the first of each other event, all errors; and the rest is counted.
func TestTerse(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(&terse{Handler: slog.NewTextHandler(&b, handlerOptions(slog.LevelWarn)), runID: "r1", seen: new(sync.Map)}).With("run_id", "r1")
	for range 3 {
		log.With(inputAttr, "raw_0001.json").Warn("record_bad", "record_index", 1)
		log.Warn("file_left", inputAttr, "raw_0002.json")
		log.Warn("shortage")
		log.With("a", 1).WithGroup("g").Warn("shortage")
		log.Error("file_bad", inputAttr, "raw_0002.json")
		log.Info("calm")
	}
	assert.Equal(t, ledger.Counts{"record_bad": 3, "file_left": 3, "shortage": 5}, Unshown("r1"))
	var shown []string
	for line, err := b.ReadString('\n'); err != io.EOF; line, err = b.ReadString('\n') {
		shown = append(shown, line[strings.Index(line, "event="):])
	}
	assert.Equal(t, []string{"event=shortage run_id=r1\n", "event=file_bad run_id=r1 file_path=raw_0002.json\n",
		"event=file_bad run_id=r1 file_path=raw_0002.json\n", "event=file_bad run_id=r1 file_path=raw_0002.json\n"}, shown)
	assert.Empty(t, Unshown("r2"))
}
