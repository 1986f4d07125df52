package store

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/storage"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"
	"gocloud.dev/blob"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/blob/memblob"
	"gocloud.dev/blob/s3blob"
	"gocloud.dev/gcerrors"
)

// cloud is a bucket of gocloud.dev/blob. Of the keys that checkKey accepts, its
// drivers escape only those with a literal "__0x", and unescape them again. All
// others are sent unchanged.
type cloud struct {
	bucket     *blob.Bucket
	prefix     string // empty, or ends with "/"
	bufferSize int    // blob.WriterOptions.BufferSize
	local      bool   // in this process's memory
	probed     probe
	close      func() error
}

func openCloud(ctx context.Context, u *url.URL) (*cloud, error) {
	switch u.Scheme {
	case "s3":
		return openS3(ctx, u.Host, u.Query().Get("endpoint"), u.Query().Get("region"))
	case "r2":
		return openR2(ctx, u.Host)
	case "gs":
		return openGCS(ctx, u.Host)
	case "mem":
		return openMemory(u.Host), nil
	}
	return nil, fmt.Errorf("the scheme %q is unknown; use a directory, file://, s3://, r2://, gs:// or mem://", u.Scheme)
}

func openS3(ctx context.Context, bucket, endpoint, region string) (*cloud, error) {
	if e, err := url.Parse(endpoint); err != nil || (endpoint != "" && (e.User != nil || e.Host == "" || (e.Scheme != "http" && e.Scheme != "https"))) {
		return nil, errors.New("the endpoint must be a URL like https://host:port, without credentials")
	}
	cfg, err := config.LoadDefaultConfig(ctx, func(o *config.LoadOptions) error {
		o.Region = region
		o.Logger = logging.Nop{} // the errors say the same
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the AWS configuration: %w", err)
	}
	if endpoint != "" {
		if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
			return nil, missingKeysError(ctx, endpoint, err)
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
		return nil, errors.New("the region is not known; set AWS_REGION or add ?region=NAME")
	}
	b, err := s3blob.OpenBucket(ctx, client, bucket, &s3blob.Options{RequestChecksumCalculation: o.RequestChecksumCalculation})
	if err != nil {
		return nil, err
	}
	return &cloud{bucket: b, close: b.Close}, nil
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
func openR2(ctx context.Context, bucket string) (*cloud, error) {
	endpoint := os.Getenv("R2_ENDPOINT")
	if endpoint == "" {
		account := os.Getenv("R2_ACCOUNT_ID")
		if account == "" {
			return nil, errors.New("set R2_ACCOUNT_ID (or R2_ENDPOINT), and the R2 token as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
		}
		endpoint = "https://" + account + ".r2.cloudflarestorage.com"
	}
	return openS3(ctx, bucket, endpoint, "auto")
}

func openGCS(ctx context.Context, bucket string) (*cloud, error) {
	client, err := storage.NewClient(ctx, storage.WithJSONReads())
	if err != nil {
		return nil, fmt.Errorf("finding Google credentials (set GOOGLE_APPLICATION_CREDENTIALS, or run gcloud auth application-default login): %w", err)
	}
	client.SetRetry(storage.WithPolicy(storage.RetryNever)) // Retry is the one place that tries again
	b, err := gcsblob.OpenBucket(ctx, nil, bucket, &gcsblob.Options{Client: client})
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	// A negative size sends a body in one request; the default would allocate a
	// buffer of 16 MiB for each of thousands of small objects.
	return &cloud{bucket: b, bufferSize: -1, close: func() error { return errors.Join(b.Close(), client.Close()) }}, nil
}

var memory = struct {
	sync.Mutex
	buckets map[string]*blob.Bucket
}{buckets: map[string]*blob.Bucket{}}

func openMemory(name string) *cloud {
	memory.Lock()
	defer memory.Unlock()
	b := memory.buckets[name]
	if b == nil {
		b = memblob.OpenBucket(nil)
		memory.buckets[name] = b
	}
	return &cloud{bucket: b, local: true, close: func() error { return nil }}
}

// page is one page of a listing; next is empty after the last.
func (c *cloud) page(ctx context.Context, prefix string, token []byte, size int) (objects []*blob.ListObject, next []byte, err error) {
	if token == nil {
		token = blob.FirstPageToken
	}
	err = Retry(ctx, func() error {
		objects, next, err = c.bucket.ListPage(ctx, token, size, &blob.ListOptions{Prefix: c.prefix + prefix})
		return err
	})
	return objects, next, err
}

func (c *cloud) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		var token []byte
		for {
			objects, next, err := c.page(ctx, prefix, token, pageSize)
			if err != nil {
				yield(Object{}, fmt.Errorf("listing %q: %w", prefix, err))
				return
			}
			for _, o := range objects {
				if !yield(c.toObject(o), nil) {
					return
				}
			}
			if len(next) == 0 {
				return
			}
			token = next
		}
	}
}

// toObject takes the ETag from the service's own response: gocloud's type has none.
func (c *cloud) toObject(l *blob.ListObject) Object {
	o := Object{Key: l.Key, Size: l.Size, ModTime: l.ModTime, ETag: hex.EncodeToString(l.MD5)}
	var amazon types.Object
	var google storage.ObjectAttrs
	switch {
	case l.As(&amazon):
		o.ETag = strings.Trim(aws.ToString(amazon.ETag), `"`)
	case l.As(&google):
		o.ETag = generation(&google)
	}
	o.Key = strings.TrimPrefix(o.Key, c.prefix)
	return o
}

// generation serves as the ETag of a GCS object: GCS's own ETag changes with the
// metadata too.
func generation(o *storage.ObjectAttrs) string { return strconv.FormatInt(o.Generation, 10) }

func (c *cloud) Head(ctx context.Context, key string) (Object, error) {
	if err := checkKey(key); err != nil {
		return Object{}, err
	}
	a, err := c.bucket.Attributes(ctx, c.prefix+key)
	if err != nil {
		return Object{}, keyError("describing", key, err)
	}
	o := Object{Key: key, Size: a.Size, ModTime: a.ModTime, ETag: hex.EncodeToString(a.MD5), ContentType: a.ContentType}
	if len(a.Metadata) > 0 {
		o.Metadata = a.Metadata
	}
	var amazon s3.HeadObjectOutput
	var google storage.ObjectAttrs
	switch {
	case a.As(&amazon):
		o.ETag = strings.Trim(aws.ToString(amazon.ETag), `"`)
	case a.As(&google):
		o.ETag = generation(&google)
	}
	return o, nil
}

func (c *cloud) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	r, err := c.bucket.NewReader(ctx, c.prefix+key, nil)
	if err != nil {
		return nil, keyError("opening", key, err)
	}
	return &body{r, key}, nil
}

// body adds the key to the errors of its reader and marks them with
// errConnectionBroken.
type body struct {
	io.ReadCloser
	key string
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("reading %q: %w: %w", b.key, errConnectionBroken, err)
	}
	return n, err
}

func (c *cloud) Put(ctx context.Context, key string, body io.Reader, o PutOptions) error {
	return c.put(ctx, key, body, o, false)
}

func (c *cloud) PutIfAbsent(ctx context.Context, key string, body io.Reader, o PutOptions) error {
	return c.put(ctx, key, body, o, true)
}

func (c *cloud) put(ctx context.Context, key string, body io.Reader, o PutOptions, ifAbsent bool) error {
	if err := checkKey(key); err != nil {
		return err
	}
	o, err := o.withDefaults(key)
	if err != nil {
		return err
	}
	// Some drivers of gocloud store the part that they have when the body fails. So
	// the first MiB, which is most bodies, is read before the request; when a longer
	// body fails, it cancels the request.
	head, err := io.ReadAll(io.LimitReader(body, readAhead))
	if err != nil {
		return fmt.Errorf("writing %q: reading the body: %w", key, err)
	}
	if ifAbsent && len(head) == readAhead {
		// A server that refuses a long body early resets the connection, and the
		// client never reads the response. So an existing key is found first; between
		// concurrent writers IfNotExist decides.
		_, err := c.Head(ctx, key)
		if err == nil {
			return fmt.Errorf("writing %q: %w", key, ErrExist)
		}
		if !errors.Is(err, ErrNotExist) {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	src := &cancellingBody{r: body, cancel: cancel}
	err = c.bucket.Upload(ctx, c.prefix+key, io.MultiReader(bytes.NewReader(head), src), &blob.WriterOptions{
		ContentType: o.ContentType, Metadata: o.Metadata, IfNotExist: ifAbsent, BufferSize: c.bufferSize,
	})
	if src.err != nil {
		return fmt.Errorf("writing %q: reading the body: %w", key, src.err)
	}
	if err != nil {
		if ifAbsent && gcerrors.Code(err) == gcerrors.FailedPrecondition {
			return fmt.Errorf("writing %q: %w", key, ErrExist)
		}
		return keyError("writing", key, err)
	}
	return nil
}

const readAhead = 1 << 20

// cancellingBody cancels an upload when its body fails.
type cancellingBody struct {
	r      io.Reader
	cancel context.CancelFunc
	err    error
}

func (s *cancellingBody) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
		s.cancel()
	}
	return n, err
}

func (c *cloud) Delete(ctx context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if err := keyError("deleting", key, c.bucket.Delete(ctx, c.prefix+key)); err != nil && !errors.Is(err, ErrNotExist) {
		return err
	}
	return nil
}

func (c *cloud) Close() error { return c.close() }

// keyError adds the operation and the key to err. A missing bucket is not reported
// as a missing object: the run must not mistake it for an empty store.
func keyError(doing, key string, err error) error {
	if err == nil {
		return nil
	}
	var noBucket *types.NoSuchBucket
	gone := errors.As(err, &noBucket) || errors.Is(err, storage.ErrBucketNotExist)
	// gcsblob calls a 403 "not found" as well.
	if gcerrors.Code(err) == gcerrors.NotFound && !gone && httpStatus(err) != 403 {
		return fmt.Errorf("%s %q: %w", doing, key, ErrNotExist)
	}
	return fmt.Errorf("%s %q: %w", doing, key, err)
}
