package known

import (
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/io/secret"
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

// IsSecret reports whether an entry of an environment, NAME=value, is for the server
// only.
func IsSecret(entry string) bool {
	name, _, _ := strings.Cut(entry, "=")
	return slices.Contains(SecretVariables, strings.TrimSuffix(name, secret.FileSuffix))
}
