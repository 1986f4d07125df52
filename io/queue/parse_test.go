package queue

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/parse/cases"
)

// The forms of notifications are those of the services' documentation.
func TestParse(t *testing.T) {
	for name, c := range cases.Table[map[string]struct {
		Body       string
		Attributes map[string]string
		Want       []Wanted
		Bad        bool
	}](t, "messages.yaml") {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(Message{Body: []byte(c.Body), Attributes: c.Attributes})
			require.Equal(t, c.Bad, err != nil, "%v", err)
			require.Equal(t, c.Want, got)
		})
	}
}

func TestParseAddress(t *testing.T) {
	for address, ok := range map[string]bool{
		"cloudflare://acc/queue": true, "sqs://sqs.eu-west-1.amazonaws.com/1/name": true, "pubsub://p/s": true, "nats://host:4222/S/c": true, "tls://host/S/c": true,
		"": false, "queue": false, "cloudflare://acc": false, "sqs://host/name": false, "nats://host/S": false, "kafka://host/t": false,
		"nats://user:secret@host/S/c": false, "cloudflare://a/b?endpoint=ftp://x": false, "cloudflare://a/b?endpoint=http://u:p@x": false,
	} {
		_, err := parse(address, Forms)
		assert.Equal(t, ok, err == nil, address)
		if err != nil {
			assert.NotContains(t, err.Error(), "secret")
		}
	}
}
