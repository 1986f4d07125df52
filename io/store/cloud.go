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

// cloud is a bucket of gocloud.dev/blob. checkKey leaves only one thing that its
// drivers escape: a literal "__0x", which comes back as it went in. All other
// keys go over the wire as they are.
type cloud struct {
	bucket     *blob.Bucket
	prefix     string // empty, or ends with "/"
	bufferSize int    // blob.WriterOptions.BufferSize
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
		o.Logger = logging.Nop{} // what it would print is in the errors too
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the AWS configuration: %w", err)
	}
	if endpoint != "" {
		if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
			return nil, noKeys(ctx, endpoint, err)
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
		// Not Amazon: bucket names are no host names there, and not every one of
		// them knows the checksums that the SDK adds since 2025.
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

// noKeys says what is wrong with an endpoint for which no keys were found: the
// SDK looks for keys before it connects, at last at Amazon's own machines.
func noKeys(ctx context.Context, endpoint string, why error) error {
	ask, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ask, http.MethodHead, endpoint, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("the endpoint %s does not answer, and there are no keys for it: %w", endpoint, err)
	}
	_ = resp.Body.Close() // any answer will do
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
	// Any negative size sends a body in one request; the default would take a
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
	return &cloud{bucket: b, close: func() error { return nil }}
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
				if !yield(c.listed(o), nil) {
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

// listed takes the ETag from the service's own answer: gocloud's has none.
func (c *cloud) listed(l *blob.ListObject) Object {
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

// generation is the ETag of a GCS object: its own changes with its metadata too.
func generation(o *storage.ObjectAttrs) string { return strconv.FormatInt(o.Generation, 10) }

func (c *cloud) Head(ctx context.Context, key string) (Object, error) {
	if err := checkKey(key); err != nil {
		return Object{}, err
	}
	a, err := c.bucket.Attributes(ctx, c.prefix+key)
	if err != nil {
		return Object{}, failed("describing", key, err)
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
		return nil, failed("opening", key, err)
	}
	return &body{r, key}, nil
}

// body names the object in the errors of its reader and marks them with errCut.
type body struct {
	io.ReadCloser
	key string
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("reading %q: %w: %w", b.key, errCut, err)
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
	o, err := o.normal(key)
	if err != nil {
		return err
	}
	// Some drivers of gocloud keep what they have when the body fails. So most
	// bodies are read before the request is made; a longer one that fails cancels it.
	head, err := io.ReadAll(io.LimitReader(body, readAhead))
	if err != nil {
		return fmt.Errorf("writing %q: reading the body: %w", key, err)
	}
	if ifAbsent && len(head) == readAhead {
		// A server that refuses a long body early resets the connection, and its
		// answer is lost. So a taken key is found before; the race stays with IfNotExist.
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
	src := &source{r: body, cancel: cancel}
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
		return failed("writing", key, err)
	}
	return nil
}

const readAhead = 1 << 20

// source cancels an upload when its body fails.
type source struct {
	r      io.Reader
	cancel context.CancelFunc
	err    error
}

func (s *source) Read(p []byte) (int, error) {
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
	if err := failed("deleting", key, c.bucket.Delete(ctx, c.prefix+key)); err != nil && !errors.Is(err, ErrNotExist) {
		return err
	}
	return nil
}

func (c *cloud) Close() error { return c.close() }

// failed says what was done to which key. A missing bucket is not a missing
// object: the run must not take it for an empty store.
func failed(doing, key string, err error) error {
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
