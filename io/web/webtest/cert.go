package webtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const maxCerts = 10_000

// authority signs a certificate for any name, with one key for all leaves: making a key a host would cost more than the
// handshake.
type authority struct {
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	leaf   *ecdsa.PrivateKey
	pem    []byte
	serial atomic.Int64
	certs  sync.Map // name → *tls.Certificate, of the latest maxCerts names or fewer
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the CA key: %w", err)
	}
	leaf, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the leaf key: %w", err)
	}
	now := time.Now()
	t := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Simulated internet, not to be trusted"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0), KeyUsage: x509.KeyUsageCertSign,
		BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("signing the CA: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parsing the CA: %w", err)
	}
	a := &authority{cert: cert, key: key, leaf: leaf, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
	a.serial.Store(1)
	return a, nil
}

// certificate returns the name's certificate, made at the first call; "" is for clients that dial the address itself.
func (a *authority) certificate(name string) (*tls.Certificate, error) {
	if c, ok := a.certs.Load(name); ok {
		return c.(*tls.Certificate), nil
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial.Add(1)), NotBefore: a.cert.NotBefore, NotAfter: a.cert.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if name == "" {
		t.DNSNames, t.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	} else {
		t.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, &a.leaf.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("signing a certificate for %s: %w", name, err)
	}
	if t.SerialNumber.Int64()%maxCerts == 0 { // a crawl of ten million names asks each of them for a short time
		a.certs.Clear()
	}
	c, _ := a.certs.LoadOrStore(name, &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: a.leaf})
	return c.(*tls.Certificate), nil
}
