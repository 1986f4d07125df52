package index_test

import (
	"testing"

	"github.com/newsfork/seed-engine/io/db/dbtest"
	"github.com/newsfork/seed-engine/io/index/indextest"
)

// An index does the same in each database.
func TestIndex(t *testing.T) { dbtest.Each(t, indextest.Run) }
