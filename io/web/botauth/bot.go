package botauth

import (
	"cmp"
	"errors"
	"fmt"
	"net/mail"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/io/secret"
)

// Bot is the block `bot:` of a configuration: what a crawler says of itself, to all jobs' sites alike.
type Bot struct {
	// The crawler's name, which is the User-Agent and what robots.txt names, such as
	// AcmeBot/1.0. Without it each job has its own.
	Name string `yaml:"name" pattern:"^[A-Za-z_-][!-~]*( [!-~]+)*$"`
	// Where owners of sites write: a mail address, which is sent as From, or a URL.
	Contact string `yaml:"contact" pattern:"@|^https?://"`
	// The address of the page about the crawler, which the User-Agent names. The key
	// directory is on the same host.
	Page string `yaml:"page" pattern:"^https://"`
	// The file with the private key that signs requests, on each worker, which only its owner
	// may read. SEED_BOT_KEY in the worker's environment replaces it.
	Key string `yaml:"key"`
	// When requests are signed: always, or, once a host has asked for it, challenged.
	Sign string `yaml:"sign" jsonschema:"enum=always,enum=challenged,default=always"`
	// Who crawls, for the page.
	Operator string `yaml:"operator"`
	// The IP addresses and networks that requests come from, for the page.
	Addresses []string `yaml:"addresses"`
}

var agentForm = regexp.MustCompile(`^[A-Za-z_-][!-~]*( [!-~]+)*$`)

const maxAgent = 300

// CheckAgent refuses what is no User-Agent.
func CheckAgent(name string) error {
	if !agentForm.MatchString(name) || len(name) > maxAgent {
		return fmt.Errorf("%q: write a crawler's name, such as ExampleBot/1.0 (+https://example.org/bot), in printable ASCII", name)
	}
	return nil
}

// Check refuses a block with which no request can be sent. It does not read the key.
func (b Bot) Check() error {
	if strings.Contains(b.Key, "PRIVATE KEY") || strings.Contains(b.Key, "\n") { // which no error may show
		return fmt.Errorf("key: name the file of the private key; the key itself may be in %s of the worker's environment only", KeyVariable)
	}
	if b.Name != "" {
		if err := CheckAgent(b.Name); err != nil {
			return fmt.Errorf("name: %w", err)
		}
	}
	if b.Contact != "" && (b.Mail() == "" && !isURL(b.Contact, "https", "http") || !printable(b.Contact)) {
		return fmt.Errorf("contact %q: use a URL or a mail address", b.Contact)
	}
	if b.Page != "" && (!isURL(b.Page, "https") || !printable(b.Page)) {
		return fmt.Errorf("page %q: write the https URL of the page about the crawler", b.Page)
	}
	if b.Page == "" && (b.Key != "" || b.Sign != "") {
		return errors.New("key and sign need page: its host has the key directory, whose address each signed request names")
	}
	if !slices.Contains([]string{"", Always, Challenged}, b.Sign) {
		return fmt.Errorf("sign %q: use %s or %s", b.Sign, Always, Challenged)
	}
	for _, a := range b.Addresses {
		if _, err := network(a); err != nil {
			return fmt.Errorf("addresses: %q is no IP address or network; write such as 192.0.2.7 or 2001:db8::/48", a)
		}
	}
	return nil
}

// CheckPage refuses a block that does not say who crawls and how to reach them.
func (b Bot) CheckPage() error {
	switch {
	case strings.TrimSpace(b.Operator) == "":
		return errors.New("operator: say who crawls, such as a company's name")
	case b.Mail() == "" && !isURL(b.Contact, "https"):
		return fmt.Errorf("contact: %q is neither an e-mail address nor an https URL; write one that somebody reads", b.Contact)
	}
	return b.Check()
}

// network reads an address as the network of itself alone.
func network(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(a.WithZone(""), a.BitLen()), nil
	}
	return netip.ParsePrefix(text)
}

func isURL(text string, schemes ...string) bool {
	u, err := url.Parse(text)
	return err == nil && slices.Contains(schemes, u.Scheme) && u.Host != "" && u.User == nil
}

// Mail is the contact's mail address, for the header From (RFC 9110, section 10.1.2); "" if the contact is a URL.
func (b Bot) Mail() string {
	if a, err := mail.ParseAddress(b.Contact); err == nil {
		return a.Address
	}
	return ""
}

// UserAgent is the User-Agent of a job whose own is given: the block's name, with the page or the contact. A job's own page
// stays until the block has one.
func (b Bot) UserAgent(own string) string {
	name, about := cmp.Or(b.Name, own), cmp.Or(b.Page, b.Mail(), b.Contact)
	product, _, explained := strings.Cut(name, " (")
	if about == "" || explained && (b.Name != "" || b.Page == "") {
		return name
	}
	return product + " (+" + about + ")"
}

// Signing says how requests are signed.
func (b Bot) Signing() Config {
	if b.Page == "" {
		return Config{}
	}
	return Config{Directory: b.at(directoryPath), KeyFile: b.Key, Mode: b.Sign}
}

// Signs reports whether there is a key for this process and a page whose host publishes it.
func (b Bot) Signs() bool {
	return b.Page != "" && (b.Key != "" || os.Getenv(KeyVariable) != "" || os.Getenv(KeyVariable+secret.FileSuffix) != "")
}

// at is an address on the page's host.
func (b Bot) at(path string) string {
	u, err := url.Parse(b.Page)
	if err != nil {
		return "" // Check refused it
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: path}).String()
}
