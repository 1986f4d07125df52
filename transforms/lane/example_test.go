package lane_test

import (
	"fmt"

	"github.com/newsfork/seed-engine/transforms/lane"
)

// A lane is a hash of the host's name: all pages of a host are in one lane.
func Example() {
	for _, host := range []string{"example.org", "example.net", "example.org"} {
		fmt.Println(host, lane.Of(host, 16))
	}
	// Output:
	// example.org 1
	// example.net 0
	// example.org 1
}
