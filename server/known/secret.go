package known

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// Secrets of the server, which are not passed to runs. Each can also be in the file
// that the variable with _FILE after its name names.
const (
	TokenVariable        = "SEED_SERVER_TOKEN"      // of those who may do all
	ReadTokenVariable    = "SEED_SERVER_READ_TOKEN" // of those who may look
	WebhookVariable      = "SEED_WEBHOOK_URL"       // of Slack
	AlertURLVariable     = "SEED_ALERT_URL"         // of the signed webhook
	AlertSecretVariable  = "SEED_ALERT_SECRET"      // the key of its signatures
	SMTPPasswordVariable = "SEED_SMTP_PASSWORD"     // of the mail server
)

// SecretVariables are the variables that runs do not get.
var SecretVariables = []string{TokenVariable, ReadTokenVariable, WebhookVariable, AlertURLVariable, AlertSecretVariable,
	SMTPPasswordVariable}

const fileSuffix = "_FILE"

// IsSecret reports whether an entry of an environment, NAME=value, is for the server
// only.
func IsSecret(entry string) bool {
	name, _, _ := strings.Cut(entry, "=")
	return slices.Contains(SecretVariables, strings.TrimSuffix(name, fileSuffix))
}

// maxSecret is how many bytes of a file with a secret are read.
const maxSecret = 64 << 10

// ReadSecret is the secret in a variable, or in the file that NAME_FILE names; "" if
// there is none.
func ReadSecret(name string) (text string, err error) {
	value, path := os.Getenv(name), os.Getenv(name+fileSuffix)
	if path == "" {
		return value, nil
	}
	if value != "" {
		return "", fmt.Errorf("%s and %s are both set; use one of them", name, name+fileSuffix)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name+fileSuffix, err)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSecret))
	if err = errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("%s: %w", name+fileSuffix, err)
	}
	if text = strings.TrimSpace(string(b)); text == "" {
		return "", fmt.Errorf("%s: %s is empty", name+fileSuffix, path)
	}
	return text, nil
}
