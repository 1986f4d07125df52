package delta

import (
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/columnar"
)

// seeds are all kinds of actions.
func seeds() []action {
	f := File{Path: "a/b.parquet", Size: 1, Rows: 2, Tags: map[string]string{"k": "v"}}
	meta := metaData{ID: "i", Format: provider{"parquet", map[string]string{}}, Schema: SchemaOf[row]().text(), Partition: []string{}, Configuration: map[string]string{}}
	return []action{{Protocol: &protocol{1, 2}}, {MetaData: &meta}, {Txn: &txn{"w", 3, 4}}, f.added(true), f.removed(5, false)}
}

// Whatever is in the place of an entry: it is an error, or a state that can be written and read again.
func FuzzEntry(f *testing.F) {
	b, err := encode(append([]action{{CommitInfo: &commitInfo{Timestamp: 1, TxnID: "x"}}}, seeds()...))
	require.NoError(f, err)
	for _, seed := range []string{string(b), `{"add":{"path":"a%20b","stats":"{"}}`, `{"remove":{"path":"../x"}}`, `{"cdc":{}}`, "{}\n\n{}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if actions, err := decodeEntry(b); err == nil {
			again(t, actions)
		}
	})
}

func FuzzCheckpoint(f *testing.F) {
	b, err := columnar.Encode(seeds(), parquet.Compression(&parquet.Snappy))
	require.NoError(f, err)
	f.Add(b)
	f.Add(b[:len(b)/2])
	for i := 7; i < len(b); i += len(b) / 20 {
		broken := append([]byte{}, b...)
		broken[i] ^= 0xff
		f.Add(broken)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if actions, err := decodeCheckpoint(b); err == nil {
			again(t, actions)
		}
	})
}

// again applies actions, and compares the state with that of its own checkpoint.
func again(t *testing.T, actions []action) {
	st := empty()
	st.apply(actions)
	for _, f := range st.snapshot().Files {
		require.NoError(t, check([]action{{Add: &added{Path: f.Path}}}))
	}
}
