package store_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/newsfork/seed-engine/io/store"
)

// With io/store/bucket imported the same program works on s3://, r2:// and gs://.
func Example() {
	ctx := context.Background()
	s, err := store.Open(ctx, "mem://example")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = s.Close() }() // nothing is lost in memory
	fmt.Println(store.Create(ctx, s, "results/a.json", []byte("1"), store.PutOptions{}))
	err = store.Create(ctx, s, "results/a.json", []byte("2"), store.PutOptions{})
	fmt.Println(errors.Is(err, store.ErrExist))
	for o, err := range s.List(ctx, "results/") {
		fmt.Println(o.Key, o.Size, err)
	}
	// Output:
	// <nil>
	// true
	// results/a.json 1 <nil>
}
