package store

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"syscall"
	"time"

	"gocloud.dev/gcerrors"
	"google.golang.org/api/googleapi"
)

const (
	// Retries is how often Retry tries again after a call that failed.
	Retries = 3
	// throttledRetries is the same after a call that was refused because there are too
	// many. That says nothing against the call, and a bucket stays so until there are fewer
	// calls, or until it has grown: so there are more tries, over about a minute.
	throttledRetries = 10

	// The waits before the retries are 200 ms, 400 ms and so on, each longer or
	// shorter by up to a half at random, so that workers do not retry in step.
	firstWait = 200 * time.Millisecond
	maxWait   = 10 * time.Second
)

// Retryable reports whether the same call can succeed later: after a 5xx,
// throttling, a timeout, a connection that was reset or could not be made, or a
// body that broke off. An absent or existing key, a refused permission, any other
// 4xx and a cancelled context are final. A deadline is retryable; whether it was
// the caller's own deadline, only the caller's context says.
func Retryable(err error) bool {
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, ErrKey),
		errors.Is(err, ErrNotExist), errors.Is(err, ErrExist), errors.Is(err, errors.ErrUnsupported):
		return false
	}
	if status := httpStatus(err); status != 0 {
		if status == http.StatusBadRequest || status == http.StatusConflict {
			return transientCode(err)
		}
		return status >= 500 && status != http.StatusNotImplemented ||
			status == http.StatusTooManyRequests || status == http.StatusRequestTimeout
	}
	if transientCode(err) || errors.Is(err, errConnectionBroken) || errors.Is(err, errNotAllowedNow) {
		return true
	}
	var send interface{ ConnectionError() bool } // of the AWS SDK
	var op *net.OpError
	var u *url.Error
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &timeout) && timeout.Timeout(), errors.As(err, &send) && send.ConnectionError(), errors.As(err, &op):
		return true
	case errors.As(err, &u):
		return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	}
	for _, transient := range []error{context.DeadlineExceeded, syscall.ECONNRESET, syscall.ECONNREFUSED, syscall.ECONNABORTED, syscall.EPIPE, syscall.ETIMEDOUT, syscall.EINTR, syscall.EAGAIN, syscall.ESTALE} {
		if errors.Is(err, transient) {
			return true
		}
	}
	switch gcerrors.Code(err) {
	case gcerrors.ResourceExhausted, gcerrors.DeadlineExceeded, gcerrors.Internal:
		return true
	}
	return false
}

// throttled reports whether a call was refused because there are too many.
func throttled(err error) bool {
	if httpStatus(err) == http.StatusTooManyRequests {
		return true
	}
	var api interface{ ErrorCode() string } // of the AWS SDK
	return errors.As(err, &api) && slices.Contains(throttlingCodes, api.ErrorCode())
}

// throttlingCodes are S3's (Amazon S3 API Reference, Error responses). ServiceUnavailable
// is none of them: a server that is down says it too, and whoever waits for a command
// shall hear of that soon.
var throttlingCodes = []string{"SlowDown", "Throttling", "ThrottlingException", "RequestLimitExceeded"}

func httpStatus(err error) int {
	var aws interface{ HTTPStatusCode() int }
	var google *googleapi.Error
	switch {
	case errors.As(err, &aws):
		return aws.HTTPStatusCode()
	case errors.As(err, &google):
		return google.Code
	}
	return 0
}

// transientCode reports whether err has an S3 error code that is transient although
// its status is 400 or 409 (Amazon S3 API Reference, Error responses).
func transientCode(err error) bool {
	var api interface{ ErrorCode() string } // of the AWS SDK
	if !errors.As(err, &api) {
		return false
	}
	switch api.ErrorCode() {
	case "RequestTimeout", "ConditionalRequestConflict", "OperationAborted", "InternalError", "ServiceUnavailable":
		return true
	}
	return slices.Contains(throttlingCodes, api.ErrorCode())
}

// errConnectionBroken marks a failure of the connection while a body was read. By
// itself io.ErrUnexpectedEOF is not enough: a truncated JSON file gives it too.
var errConnectionBroken = errors.New("the connection broke while reading")

// Retry runs op again, with growing waits, while its error is Retryable and ctx is not
// done: up to Retries times after failures, and for longer where there are too many
// calls. It returns the last error. op must start from the beginning each time: a body
// to Put has to be rewound.
func Retry(ctx context.Context, op func() error) error {
	wait := firstWait
	for failed, refused := 0, 0; ; {
		err := op()
		if throttled(err) {
			refused++
		} else {
			failed++
		}
		if err == nil || failed > Retries || refused > throttledRetries || !Retryable(err) || ctx.Err() != nil {
			return err
		}
		timer := time.NewTimer(wait/2 + rand.N(wait))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
		wait = min(2*wait, maxWait)
	}
}
