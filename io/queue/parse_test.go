package queue

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store/hive"
)

// The forms of notifications are those of the services' documentation.
func TestParse(t *testing.T) {
	const raw = "datasets/country=sg/category=news/date=2026-01-28/raw_0001.json"
	s3 := `{"Records":[{"eventVersion":"2.5","eventSource":"aws:s3","awsRegion":"us-west-2","eventName":"ObjectCreated:Put","s3":{"s3SchemaVersion":"1.0","bucket":{"name":"b"},` +
		`"object":{"key":"datasets/country%3Dsg/category%3Dnews/date%3D2026-01-28/raw_0001.json","size":1024,"eTag":"d41d8cd9","sequencer":"0A"}}}]}`
	wrapped, err := json.Marshal(map[string]string{"Type": "Notification", "MessageId": "1", "TopicArn": "arn:aws:sns:us-west-2:1:t", "Message": s3})
	require.NoError(t, err)
	twice, err := json.Marshal(map[string]string{"Type": "Notification", "Message": string(wrapped)})
	require.NoError(t, err)
	in := `"partition_info":{"country":"SG","category":"news","date":"2026-01-28"}`
	domain := `{"domain_id":"gov:sg:mom.gov.sg","domain_url":"https://www.mom.gov.sg/newsroom","registrable_domain":"mom.gov.sg","authority":"gov",` + in + `,"source_file_path":"` + raw + `"}`
	gcs := map[string]string{"eventType": "OBJECT_FINALIZE", "bucketId": "b", "objectId": raw, "payloadFormat": "JSON_API_V1"}
	ofBucket := []Wanted{{Bucket: "b", Key: raw}}
	for name, c := range map[string]struct {
		body       string
		attributes map[string]string
		want       []Wanted
		bad        bool
	}{
		"R2":               {body: `{"account":"3f4b","action":"PutObject","bucket":"b","object":{"key":"` + raw + `","size":65536,"eTag":"c846"},"eventTime":"2024-05-24T19:36:44.379Z"}`, want: ofBucket},
		"R2 in parts":      {body: `{"account":"3f4b","action":"CompleteMultipartUpload","bucket":"b","object":{"key":"` + raw + `"}}`, want: ofBucket},
		"R2 deleted":       {body: `{"account":"3f4b","action":"DeleteObject","bucket":"b","object":{"key":"` + raw + `"}}`},
		"S3":               {body: s3, want: ofBucket},
		"S3 by SNS":        {body: string(wrapped), want: ofBucket},
		"SNS in SNS":       {body: string(twice), bad: true},
		"S3 key":           {body: `{"Records":[{"eventName":"s3:ObjectCreated:CompleteMultipartUpload","s3":{"bucket":{"name":"b"},"object":{"key":"a+b/%C3%A9%2B.json"}}}]}`, want: []Wanted{{Bucket: "b", Key: "a b/é+.json"}}},
		"S3 removed":       {body: `{"Records":[{"eventName":"ObjectRemoved:Delete","s3":{"bucket":{"name":"b"},"object":{"key":"x"}}}]}`},
		"S3 without key":   {body: `{"Records":[{"eventName":"ObjectCreated:Put"}]}`, bad: true},
		"S3 test":          {body: `{"Service":"Amazon S3","Event":"s3:TestEvent","Time":"2014-10-13T15:57:02.089Z","Bucket":"b","RequestId":"5582","HostId":"8cLe"}`},
		"GCS":              {body: `{"kind":"storage#object"}`, attributes: gcs, want: ofBucket},
		"GCS without body": {attributes: gcs, want: ofBucket},
		"GCS deleted":      {attributes: map[string]string{"eventType": "OBJECT_DELETE", "bucketId": "b", "objectId": raw}},
		"raw file":         {body: `{"file_path":"` + raw + `",` + in + `}`, want: []Wanted{{Key: raw}}},
		"raw file alone":   {body: `{"file_path":"` + raw + `"}`, want: []Wanted{{Key: raw}}},
		"domain": {body: domain, want: []Wanted{{Key: raw, Domain: &Domain{"gov:sg:mom.gov.sg", "https://www.mom.gov.sg/newsroom", "mom.gov.sg",
			hive.Partition{Country: "sg", Category: "news", Date: "2026-01-28"}}}}},
		"domain of nobody":   {body: `{"domain_id":"mil:sg:mom.gov.sg","domain_url":"https://mom.gov.sg/","registrable_domain":"mom.gov.sg","authority":"gov",` + in + `}`, bad: true},
		"domain, no place":   {body: `{"domain_id":"gov:sg:mom.gov.sg","domain_url":"https://mom.gov.sg/","registrable_domain":"mom.gov.sg","authority":"gov"}`, bad: true},
		"raw file of number": {body: `{"file_path":7}`, bad: true},
		"no path":            {body: `{"file_path":""}`, bad: true},
		"other object":       {body: `{"hello":"world"}`, bad: true},
		"list":               {body: `[]`, bad: true},
		"text":               {body: "hello", bad: true},
		"nothing":            {bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(Message{Body: []byte(c.body), Attributes: c.attributes})
			require.Equal(t, c.bad, err != nil, "%v", err)
			require.Equal(t, c.want, got)
		})
	}
}
