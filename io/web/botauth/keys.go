package botauth

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/newsfork/seed-engine/io/secret"
)

// KeyVariable is the environment variable with the private keys, or with _FILE after it with the path of their file.
const KeyVariable = "SEED_BOT_KEY"

// maxKeyFile is the largest key file in bytes.
const maxKeyFile = 64 << 10

// Key is a private key with its id.
type Key struct {
	ID      string // the thumbprint of the public key: RFC 7638 and RFC 8037, appendix A.3
	private ed25519.PrivateKey
}

// keys are private keys, the newest last. The newest one signs; a key directory lists all.
type keys []Key

// parseKeys reads the keys of a PEM text (PKCS #8, RFC 8410). No error contains a part of the text.
func parseKeys(text []byte) (all keys, err error) {
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		text = rest
		parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		key, ok := parsed.(ed25519.PrivateKey)
		if err != nil || !ok {
			return nil, fmt.Errorf("PEM block %d is no Ed25519 private key; make one with `openssl genpkey -algorithm ed25519`", len(all)+1)
		}
		k := Key{thumbprint(key.Public().(ed25519.PublicKey)), key}
		if slices.ContainsFunc(all, func(o Key) bool { return o.ID == k.ID }) {
			return nil, fmt.Errorf("PEM block %d repeats a key; remove it", len(all)+1)
		}
		all = append(all, k)
	}
	if len(all) == 0 {
		return nil, errors.New("there is no private key in PEM; make one with `openssl genpkey -algorithm ed25519`")
	}
	return all, nil
}

// readKeys reads a key file. Only its owner may have rights to it.
func readKeys(path string) (keys, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the key: %w", err)
	}
	defer func() { _ = f.Close() }() // it is only read from
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("reading the key: %w", err)
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("key file %s has mode %v: others could read the private key; run `chmod 600 %[1]s`", path, info.Mode())
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return nil, fmt.Errorf("reading the key: %w", err)
	}
	all, err := parseKeys(text)
	if err != nil {
		return nil, fmt.Errorf("key file %s: %w", path, err)
	}
	return all, nil
}

// keys reads the keys of the environment, or else those of the configured file, and returns the file that they come from.
func (c Config) keys() (all keys, file string, err error) {
	if path := os.Getenv(KeyVariable + secret.FileSuffix); path != "" && os.Getenv(KeyVariable) == "" {
		all, err = readKeys(path)
		return all, path, err
	}
	text, err := secret.Read(KeyVariable)
	switch {
	case err != nil:
		return nil, "", err
	case text != "":
		if all, err = parseKeys([]byte(text)); err != nil {
			err = fmt.Errorf("%s: %w", KeyVariable, err)
		}
		return all, "", err
	case c.KeyFile != "":
		all, err = readKeys(c.KeyFile)
		return all, c.KeyFile, err
	case c.Mode != "":
		return nil, "", fmt.Errorf("sign: %s needs a key: name its file in key, or set %s in the worker's environment", c.Mode, KeyVariable)
	}
	return nil, "", nil
}

// x is the public key as a JWK has it.
func x(public ed25519.PublicKey) string { return base64.RawURLEncoding.EncodeToString(public) }

func thumbprint(public ed25519.PublicKey) string {
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + x(public) + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func (k Key) public() ed25519.PublicKey { return k.private.Public().(ed25519.PublicKey) }
