package bucket

import (
	"errors"
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"

	"github.com/aws/smithy-go"
	"gocloud.dev/gcerrors"
)

// advices are what to do about the error codes of S3 servers.
var advices = map[string]string{
	"InvalidAccessKeyId":    "the server does not know the access key: look at AWS_ACCESS_KEY_ID or AWS_PROFILE, and at the endpoint",
	"SignatureDoesNotMatch": "the secret key is not that of the access key: set AWS_SECRET_ACCESS_KEY again",
	"ExpiredToken":          "the session token has expired: get new keys, or unset AWS_SESSION_TOKEN",
	"InvalidToken":          "the session token is wrong: set AWS_SESSION_TOKEN again, or unset it",
	"RequestTimeTooSkewed":  "this machine's clock is wrong: set it (NTP)",
	"NoSuchBucket":          "there is no such bucket: create it, or correct its name or the endpoint",
	"AccessDenied":          "these keys may not list the bucket: allow them to list, read, write and delete its objects",
	"PermanentRedirect":     wrongRegion,

	"AuthorizationHeaderMalformed": wrongRegion,
}

const wrongRegion = "the bucket is in another region: set AWS_REGION or add ?region=NAME"

// expects is where an S3 server names the region that was used, and the right one.
var expects = regexp.MustCompile(`["']([a-z0-9-]+)["'] is wrong; expecting ["']([a-z0-9-]+)["']`)

// advise says in one sentence why a bucket cannot be listed, and what to do; "" if it does not know.
func advise(err error) string {
	var api smithy.APIError
	var name *net.DNSError
	switch {
	case errors.As(err, &api):
		code := api.ErrorCode()
		if code == "XAdminUserNotFound" { // versitygw
			code = "InvalidAccessKeyId"
		}
		advice := advices[code]
		if region := expects.FindStringSubmatch(api.ErrorMessage()); region != nil && advice == wrongRegion {
			advice = "the region " + region[1] + " is wrong: set AWS_REGION=" + region[2] + " or add ?region=" + region[2]
		}
		return advice
	case errors.As(err, &name):
		return "the host name " + name.Name + " does not exist, or this machine's DNS does not answer: correct the endpoint"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens at the endpoint: start the server, or correct host and port"
	case strings.Contains(err.Error(), http.ErrSchemeMismatch.Error()):
		return "the endpoint speaks HTTP: write endpoint=http://"
	case strings.Contains(err.Error(), "x509: "):
		return "the endpoint's certificate is not trusted: name a file of its authority in SSL_CERT_FILE, or correct the host name"
	}
	switch gcerrors.Code(err) {
	case gcerrors.NotFound:
		return advices["NoSuchBucket"]
	case gcerrors.PermissionDenied:
		return "these credentials may not list the bucket: give them the role Storage Object Admin"
	}
	return ""
}
