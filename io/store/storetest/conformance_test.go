package storetest_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/bucket/buckettest"
	"github.com/newsfork/seed-engine/io/store/storetest"
	"github.com/stretchr/testify/require"
)

func open(t *testing.T, url string) store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), url)
	require.NoError(t, err)
	return s
}

func TestDirectory(t *testing.T) {
	storetest.Run(t, func() store.Store { return open(t, t.TempDir()) })
}

func TestCounted(t *testing.T) {
	storetest.Run(t, func() store.Store { return store.Counted(open(t, "file://"+t.TempDir()), new(store.Calls)) })
}

var memoryStores atomic.Int64

func TestMemory(t *testing.T) {
	storetest.Run(t, func() store.Store { return open(t, fmt.Sprintf("mem://suite%d", memoryStores.Add(1))) })
}

func TestS3(t *testing.T) {
	s3 := buckettest.StartVersity(t)
	prefix := 0
	storetest.Run(t, func() store.Store {
		prefix++ // each test has a part of the bucket for itself
		return open(t, fmt.Sprintf("s3://%s/suite/p=%d?endpoint=%s&region=us-east-1", s3.Bucket, prefix, s3.Endpoint))
	})
}

func TestR2(t *testing.T) {
	s3 := buckettest.StartVersity(t)
	t.Setenv("R2_ENDPOINT", s3.Endpoint)
	t.Setenv("AWS_REGION", "ignored")
	s, err := store.Open(t.Context(), "r2://"+s3.Bucket)
	// The gateway is of one region and says so: the request did go out as "auto".
	require.Nil(t, s)
	require.ErrorContains(t, err, "auto")
}

func TestGCS(t *testing.T) {
	bucket := buckettest.StartGCS(t)
	prefix := 0
	storetest.Run(t, func() store.Store {
		prefix++
		return open(t, fmt.Sprintf("gs://%s/suite/p=%d", bucket, prefix))
	})
}

func TestMissingBucket(t *testing.T) {
	s3 := buckettest.StartVersity(t)
	buckettest.StartGCS(t)
	for _, url := range []string{"s3://no-such-bucket?region=us-east-1&endpoint=" + s3.Endpoint, "gs://no-such-bucket"} {
		_, err := store.Open(t.Context(), url)
		require.ErrorContains(t, err, "there is no such bucket: create it", url)
		require.NotContains(t, err.Error(), s3.SecretKey)
		require.NotContains(t, err.Error(), s3.AccessKey)
	}
}
