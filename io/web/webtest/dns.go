package webtest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"golang.org/x/net/dns/dnsmessage"
)

// rebindPublic is the address that a KindRebind host has at its first look-up: a public one, which no test should reach.
const rebindPublic = "93.184.215.14"

// Place puts a host at a loopback address of its own, such as 127.0.0.2, where it is served at the port of Addr. It is for
// after Start.
func (w *Web) Place(host string, at netip.Addr) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !at.Is4() || !at.IsLoopback() {
		return fmt.Errorf("placing %s: %s is no IPv4 loopback address", host, at)
	}
	if w.closed {
		return errors.New("placing a host: the simulated internet is closed")
	}
	if _, ok := w.more[at]; !ok && at != netip.AddrFrom4([4]byte{127, 0, 0, 1}) {
		ln, err := net.Listen("tcp4", net.JoinHostPort(at.String(), strconv.Itoa(w.ln.Addr().(*net.TCPAddr).Port)))
		if err != nil {
			return fmt.Errorf("placing %s: %w", host, err)
		}
		w.more[at] = ln
		w.workers.Go(func() { w.accept(ln) })
	}
	w.places[hostName(host)] = at
	return nil
}

// lookup returns the host's address.
func (w *Web) lookup(host string) [4]byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, ok := w.places[host]; ok {
		return at.As4()
	}
	return [4]byte{127, 0, 0, 1}
}

// DNS starts, at its first call, a name server on a UDP port of 127.0.0.1 and returns its host:port. It answers A with
// 127.0.0.1 for any name that has no other place, and NXDOMAIN for KindNoSuchHost. KindRefused has no A, and the AAAA ::1, where nothing listens.
// KindRebind has rebindPublic first and 127.0.0.1 afterwards. The TTL is 0; a query of another type gets no records. A
// client uses the server by a net.Resolver with PreferGo and Dial.
func (w *Web) DNS() (addr string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return "", errors.New("starting DNS: the simulated internet is closed")
	}
	if w.dns == nil {
		conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return "", fmt.Errorf("listening for DNS: %w", err)
		}
		w.dns = conn
		w.workers.Go(func() { w.serveDNS(conn) })
	}
	return w.dns.LocalAddr().String(), nil
}

func (w *Web) serveDNS(conn *net.UDPConn) {
	buf := make([]byte, 4096)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // an ICMP error for an earlier reply: its client is gone
		}
		if reply, err := w.resolve(buf[:n]); err == nil {
			// DNS expects lost datagrams: the client sends its query again.
			_, _ = conn.WriteToUDPAddrPort(reply, from)
		}
	}
}

// resolve answers one packed query; an error means that the packet is not a query.
func (w *Web) resolve(query []byte) ([]byte, error) {
	var p dnsmessage.Parser
	head, err := p.Start(query)
	if err != nil {
		return nil, fmt.Errorf("parsing the query: %w", err)
	}
	if head.Response {
		return nil, errors.New("parsing the query: it is a response")
	}
	q, err := p.Question()
	if err != nil {
		return nil, fmt.Errorf("parsing the question: %w", err)
	}
	m := dnsmessage.Message{
		Header: dnsmessage.Header{ID: head.ID, Response: true, Authoritative: true,
			RecursionDesired: head.RecursionDesired, RecursionAvailable: true},
		Questions: []dnsmessage.Question{q},
	}
	host := hostName(q.Name.String())
	kind := w.KindOf(host)
	at := [4]byte{}
	if q.Type == dnsmessage.TypeA {
		at = w.lookup(host)
	}
	switch {
	case kind == KindNoSuchHost:
		m.RCode = dnsmessage.RCodeNameError
	case kind == KindRefused && q.Type == dnsmessage.TypeAAAA:
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: dnsmessage.TypeAAAA, Class: dnsmessage.ClassINET},
			Body:   &dnsmessage.AAAAResource{AAAA: [16]byte(net.IPv6loopback)},
		}}
	case kind == KindRefused:
	case q.Type == dnsmessage.TypeA:
		if kind == KindRebind && w.first("dns", host) {
			at = [4]byte(net.ParseIP(rebindPublic).To4())
		}
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET},
			Body:   &dnsmessage.AResource{A: at},
		}}
	}
	return m.Pack()
}
