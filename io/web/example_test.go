package web_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/newsfork/seed-engine/io/web"
)

// The address guard refuses what strangers' links must not reach.
func Example() {
	client, err := web.New(web.Config{UserAgent: "YourBot/1.0", Offline: true})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	_, err = client.Get(context.Background(), web.Request{URL: "http://169.254.169.254/latest/meta-data/"})
	var failed *web.Error
	fmt.Println(errors.As(err, &failed) && failed.Kind == web.KindBlocked)
	// Output: true
}
