package index_test

import (
	"testing"

	"github.com/newsfork/seed-engine/cmd/search/index/indextest"
	"github.com/newsfork/seed-engine/io/db/dbtest"
)

// An index does the same in each database.
func TestIndex(t *testing.T) { dbtest.Each(t, indextest.Run) }
