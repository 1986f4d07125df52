// Package bucket opens the buckets of s3://, r2:// and gs:// for package store, in a
// program that imports it. Package store is without it: linking the services' libraries
// takes seconds for each test program. No promise: see docs/library.md.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/storage"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/blob/s3blob"

	"github.com/newsfork/seed-engine/io/store"
)

func init() {
	store.Register("s3", func(ctx context.Context, u *url.URL) (store.Bucket, error) {
		return openS3(ctx, u.Host, u.Query().Get("endpoint"), u.Query().Get("region"))
	})
	store.Register("r2", func(ctx context.Context, u *url.URL) (store.Bucket, error) { return openR2(ctx, u.Host) })
	store.Register("gs", func(ctx context.Context, u *url.URL) (store.Bucket, error) { return openGCS(ctx, u.Host) })
}

func openS3(ctx context.Context, bucket, endpoint, region string) (store.Bucket, error) {
	if e, err := url.Parse(endpoint); err != nil || (endpoint != "" && (e.User != nil || e.Host == "" || (e.Scheme != "http" && e.Scheme != "https"))) {
		return store.Bucket{}, errors.New("the endpoint must be a URL like https://host:port, without credentials")
	}
	cfg, err := config.LoadDefaultConfig(ctx, func(o *config.LoadOptions) error {
		o.Region = region
		o.Logger = logging.Nop{} // the errors say the same
		return nil
	})
	if err != nil {
		return store.Bucket{}, fmt.Errorf("reading the AWS configuration: %w", err)
	}
	if endpoint != "" {
		if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
			return store.Bucket{}, missingKeysError(ctx, endpoint, err)
		}
	}
	client := s3.NewFromConfig(cfg, func(o *s3.Options) {
		if endpoint != "" {
			o.BaseEndpoint = aws.String(endpoint)
		}
		// Retry is the one place that tries again.
		o.Retryer = aws.NopRetryer{}
		if o.BaseEndpoint == nil {
			return
		}
		// Not Amazon: bucket names are not host names there, and not every server
		// knows the checksums that the SDK adds since 2025.
		o.UsePathStyle = true
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		if o.Region == "" {
			o.Region = "us-east-1"
		}
	})
	o := client.Options()
	if o.Region == "" {
		return store.Bucket{}, errors.New("the region is not known; set AWS_REGION or add ?region=NAME")
	}
	b, err := s3blob.OpenBucket(ctx, client, bucket, &s3blob.Options{RequestChecksumCalculation: o.RequestChecksumCalculation})
	if err != nil {
		return store.Bucket{}, err
	}
	return store.Bucket{Blob: b, ETag: s3ETag, Absent: noS3Bucket, Advise: advise, Close: b.Close}, nil
}

// missingKeysError says whether the endpoint is down or only the keys for it are
// missing. The SDK's own error does neither: the SDK looks for keys before it
// connects, and at last asks the metadata service of an Amazon machine.
func missingKeysError(ctx context.Context, endpoint string, why error) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, endpoint, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("the endpoint %s does not answer, and there are no keys for it (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY): %w", endpoint, err)
	}
	_ = resp.Body.Close() // only whether it answers matters
	var metadata *smithy.OperationError
	if errors.As(why, &metadata) && strings.EqualFold(metadata.ServiceID, "ec2imds") {
		return fmt.Errorf("there are no keys for the endpoint %s; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE", endpoint)
	}
	return fmt.Errorf("finding the keys for the endpoint %s: %w", endpoint, why)
}

// openR2 is openS3 at Cloudflare's address: region auto, path style, checksums
// only where they are required (developers.cloudflare.com/r2/api/s3/api).
func openR2(ctx context.Context, bucket string) (store.Bucket, error) {
	endpoint := os.Getenv("R2_ENDPOINT")
	if endpoint == "" {
		account := os.Getenv("R2_ACCOUNT_ID")
		if account == "" {
			return store.Bucket{}, errors.New("set R2_ACCOUNT_ID (or R2_ENDPOINT), and the R2 token as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
		}
		endpoint = "https://" + account + ".r2.cloudflarestorage.com"
	}
	return openS3(ctx, bucket, endpoint, "auto")
}

func openGCS(ctx context.Context, bucket string) (store.Bucket, error) {
	client, err := storage.NewClient(ctx, storage.WithJSONReads())
	if err != nil {
		return store.Bucket{}, fmt.Errorf("finding Google credentials (set GOOGLE_APPLICATION_CREDENTIALS, or run gcloud auth application-default login): %w", err)
	}
	client.SetRetry(storage.WithPolicy(storage.RetryNever)) // Retry is the one place that tries again
	b, err := gcsblob.OpenBucket(ctx, nil, bucket, &gcsblob.Options{Client: client})
	if err != nil {
		return store.Bucket{}, errors.Join(err, client.Close())
	}
	// A negative size sends a body in one request; the default would allocate a
	// buffer of 16 MiB for each of thousands of small objects.
	return store.Bucket{Blob: b, BufferSize: -1, ETag: generation, Absent: noGCSBucket, Advise: advise,
		Close: func() error { return errors.Join(b.Close(), client.Close()) }}, nil
}

// s3ETag takes the ETag from the service's own response: gocloud's type has none.
func s3ETag(as func(any) bool) string {
	var listed types.Object
	var described s3.HeadObjectOutput
	switch {
	case as(&listed):
		return strings.Trim(aws.ToString(listed.ETag), `"`)
	case as(&described):
		return strings.Trim(aws.ToString(described.ETag), `"`)
	}
	return ""
}

// generation serves as the ETag of a GCS object: GCS's own ETag changes with the
// metadata too.
func generation(as func(any) bool) string {
	var o storage.ObjectAttrs
	if !as(&o) {
		return ""
	}
	return strconv.FormatInt(o.Generation, 10)
}

func noS3Bucket(err error) bool {
	var none *types.NoSuchBucket
	return errors.As(err, &none)
}

func noGCSBucket(err error) bool { return errors.Is(err, storage.ErrBucketNotExist) }
