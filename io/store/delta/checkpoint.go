package delta

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/parquet-go/parquet-go"

	"github.com/newsfork/seed-engine/io/columnar"
	"github.com/newsfork/seed-engine/io/store"
)

// interval is how many versions are from one checkpoint to the next.
const interval = 100

// checkpoint writes all that a version is as one Parquet file, so that its readers need not read the entries before.
func (t *Table) checkpoint(ctx context.Context, st *state) error {
	actions := []action{{Protocol: st.protocol}, {MetaData: st.meta}}
	for _, app := range slices.Sorted(maps.Keys(st.epochs)) {
		actions = append(actions, action{Txn: &txn{AppID: app, Version: st.epochs[app], LastUpdated: st.at}})
	}
	for _, f := range st.snapshot().Files {
		actions = append(actions, f.added(false))
	}
	for _, path := range slices.Sorted(maps.Keys(st.removed)) {
		f := st.removed[path]
		actions = append(actions, f.removed(f.at, false))
	}
	body, err := columnar.Encode(actions, parquet.Compression(&parquet.Snappy)) // which every reader of Delta has
	if err != nil {
		return err
	}
	if err := store.Write(ctx, t.s, t.checkpointKey(st.version), body, store.PutOptions{}); err != nil {
		return err
	}
	last, err := json.Marshal(hint{st.version, len(actions)})
	if err != nil {
		return err
	}
	return store.Write(ctx, t.s, t.hintKey(), last, store.PutOptions{ContentType: "application/json"})
}
