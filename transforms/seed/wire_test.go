package seed

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The direct runner keeps elements in memory; on every other runner what a lane
// could not decide on crosses the wire.
func TestUndecidedFileCrossesTheWire(t *testing.T) {
	domains := []UnmarkedDomain{{Key: "a/domain_metadata.json", ID: "com:sg:a.com", Host: "a.com"}, {Key: "b\tb"}}
	for _, v := range []any{
		FileOutcome{Finished: 3, Unmarked: domains},
		undecidedFile{Key: "raw_0001.json", Whole: true, Summary: FileSummary{ETag: "1", Domains: 5}, Finished: 3, Unmarked: domains},
	} {
		var wire bytes.Buffer
		require.NoError(t, beam.NewElementEncoder(reflect.TypeOf(v)).Encode(v, &wire))
		got, err := beam.NewElementDecoder(reflect.TypeOf(v)).Decode(&wire)
		assert.True(t, err == nil && reflect.DeepEqual(got, v), "%+v arrives as %+v (%v)", v, got, err)
	}
}
