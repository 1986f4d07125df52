package queue

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/newsfork/seed-engine/io/store/hive"
)

// schema is the JSON schema of the messages that programs write.
//
//go:embed message.schema.json
var schema []byte

// Wanted is what a message names: a raw file or a domain.
type Wanted struct {
	Bucket string  `json:",omitempty"` // of Key; "" if the message does not say
	Key    string  `json:",omitempty"` // the bucket's own key of a raw file, or of the one that named the domain
	Domain *Domain `json:",omitempty"` // nil: the raw file
}

// Domain is one domain of one partition.
type Domain struct {
	ID          string         `json:"domain_id"`
	URL         string         `json:"domain_url"`
	Registrable string         `json:"registrable_domain"`
	Partition   hive.Partition `json:"partition_info"` // where its results are written
}

// Name identifies what is wanted.
func (w Wanted) Name() string {
	if d := w.Domain; d != nil {
		return fmt.Sprintf("%s#%s/%s/%s/%s", w.Key, d.Partition.Country, d.Partition.Category, d.Partition.Date, d.ID)
	}
	return w.Key
}

// compiled is Schema, ready to check.
var compiled = sync.OnceValue(func() *jsonschema.Schema {
	c, name := jsonschema.NewCompiler(), "message.schema.json"
	text, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err == nil {
		err = c.AddResource(name, text)
	}
	if err != nil {
		panic(err) // it is embedded, and a test compiles it
	}
	return c.MustCompile(name)
})

// notification has the fields of the services' notifications by which they are told apart.
type notification struct {
	Type, Message string // Amazon SNS puts the notification in a text
	Event         string // s3:TestEvent
	Records       []struct {
		EventName string `json:"eventName"`
		S3        struct {
			Bucket struct {
				Name string `json:"name"`
			} `json:"bucket"`
			Object struct {
				Key string `json:"key"` // encoded as in a query
			} `json:"object"`
		} `json:"s3"`
	}
	Action string `json:"action"` // Cloudflare R2
	Bucket string `json:"bucket"`
	Object struct {
		Key string `json:"key"`
	} `json:"object"`
}

// r2Creates are R2's actions that create an object.
var r2Creates = []string{"PutObject", "CopyObject", "CompleteMultipartUpload"}

// Parse returns what a message names. Notifications of anything but a new object name nothing. An error is about a message
// that no other try can read.
func Parse(m Message) ([]Wanted, error) { return parseBody(m.Body, m.Attributes, true) }

func parseBody(body []byte, attributes map[string]string, outer bool) ([]Wanted, error) {
	// https://cloud.google.com/storage/docs/pubsub-notifications
	if event, ok := attributes["eventType"]; ok && attributes["objectId"] != "" {
		if event != "OBJECT_FINALIZE" {
			return nil, nil
		}
		return []Wanted{{Bucket: attributes["bucketId"], Key: attributes["objectId"]}}, nil
	}
	var n notification
	if err := json.Unmarshal(body, &n); err != nil {
		return nil, fmt.Errorf("it is no JSON object: %w", err)
	}
	switch {
	case n.Type == "Notification" && n.Message != "" && outer:
		return parseBody([]byte(n.Message), nil, false)
	case n.Event == "s3:TestEvent":
		return nil, nil
	case len(n.Records) > 0: // https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html
		var all []Wanted
		for _, r := range n.Records {
			key, err := url.QueryUnescape(r.S3.Object.Key)
			if err != nil || key == "" {
				return nil, fmt.Errorf("a record names no object: %q", r.S3.Object.Key)
			}
			if strings.HasPrefix(strings.TrimPrefix(r.EventName, "s3:"), "ObjectCreated:") {
				all = append(all, Wanted{Bucket: r.S3.Bucket.Name, Key: key})
			}
		}
		return all, nil
	case n.Action != "" && n.Object.Key != "": // https://developers.cloudflare.com/r2/buckets/event-notifications/
		if !slices.Contains(r2Creates, n.Action) {
			return nil, nil
		}
		return []Wanted{{Bucket: n.Bucket, Key: n.Object.Key}}, nil
	}
	return parseOwn(body)
}

// parseOwn reads a message of Schema.
func parseOwn(body []byte) ([]Wanted, error) {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err == nil {
		err = compiled().Validate(value)
	}
	if err != nil {
		return nil, fmt.Errorf("it is no notification of a bucket, and not as io/queue/message.schema.json says: %w", err)
	}
	var own struct {
		File string `json:"file_path"`
		From string `json:"source_file_path"`
		Domain
	}
	if err := json.Unmarshal(body, &own); err != nil {
		return nil, err
	}
	if own.ID == "" {
		return []Wanted{{Key: own.File}}, nil
	}
	own.Partition.Country = strings.ToLower(own.Partition.Country)
	return []Wanted{{Key: own.From, Domain: &own.Domain}}, nil
}
