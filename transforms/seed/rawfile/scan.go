package rawfile

import (
	"encoding/binary"
	"io"
	"math/bits"
)

// scanner reads JSON values (RFC 8259) out of s, each byte once. Its methods report
// whether they could. Where not, cut says that s ends before the value does. Otherwise the
// value is invalid. What is wrong with it is for a decoder to say.
type scanner struct {
	s   []byte
	at  int
	cut bool
}

// part is a name or value; plain is a string of ASCII without escapes.
type part struct {
	s     []byte
	plain bool
}

// maxDepth is how deep a value of the array may be nested: the decoder allows 10,000
// levels, of which two are around the array.
const maxDepth = 10_000 - 2

// peek moves to the next byte that is no space and returns it, 0 at the end.
func (c *scanner) peek() byte {
	for ; c.at < len(c.s); c.at++ {
		if b := c.s[c.at]; b > ' ' || b != ' ' && b != '\t' && b != '\n' && b != '\r' {
			return b
		}
	}
	c.cut = true
	return 0
}

// next moves to the next element of an array or object, or past its end.
func (c *scanner) next(end byte, first bool) (more, ok bool) {
	switch b := c.peek(); {
	case b == end:
		c.at++
		return false, true
	case first:
		return true, b != 0
	case b == ',':
		c.at++
		return true, c.peek() != 0
	}
	return false, false
}

// member reads a name and its value.
func (c *scanner) member(depth int) (name, value part, ok bool) {
	if c.s[c.at] != '"' {
		return name, value, false
	}
	from := c.at
	plain, ok := c.str()
	if !ok {
		return name, value, false
	}
	name = part{c.s[from:c.at], plain}
	if c.peek() != ':' {
		return name, value, false
	}
	c.at++
	value, ok = c.value(depth)
	return name, value, ok
}

// value reads the next value, which is in depth arrays and objects.
func (c *scanner) value(depth int) (p part, ok bool) {
	b := c.peek()
	from, plain := c.at, false
	switch b {
	case '"':
		plain, ok = c.str()
	case '{', '[':
		ok = c.composite(b+2, depth+1) // in ASCII, the closing bracket is the second next
	case 't':
		ok = c.literal("true")
	case 'f':
		ok = c.literal("false")
	case 'n':
		ok = c.literal("null")
	default:
		ok = c.number()
	}
	return part{c.s[from:c.at], plain}, ok
}

func (c *scanner) composite(end byte, depth int) bool {
	if depth > maxDepth {
		return false
	}
	c.at++
	for first := true; ; first = false {
		more, ok := c.next(end, first)
		if !more || !ok {
			return ok
		}
		if end == '}' {
			_, _, ok = c.member(depth)
		} else {
			_, ok = c.value(depth)
		}
		if !ok {
			return false
		}
	}
}

func (c *scanner) literal(want string) bool {
	rest := c.s[c.at:]
	n := min(len(rest), len(want))
	c.at += n
	c.cut = n < len(want)
	return string(rest[:n]) == want
}

// number reads a number. At the end of s it is cut, because it may continue.
func (c *scanner) number() bool {
	if c.byteAt() == '-' {
		c.at++
	}
	if c.byteAt() == '0' {
		c.at++
	} else if !c.digits() {
		return false
	}
	if c.byteAt() == '.' {
		c.at++
		if !c.digits() {
			return false
		}
	}
	if c.byteAt()|0x20 == 'e' {
		c.at++
		if b := c.byteAt(); b == '+' || b == '-' {
			c.at++
		}
		if !c.digits() {
			return false
		}
	}
	return !c.cut
}

// digits reads one digit or more.
func (c *scanner) digits() bool {
	from := c.at
	for b := c.byteAt(); '0' <= b && b <= '9'; b = c.byteAt() {
		c.at++
	}
	return c.at > from
}

// byteAt is the byte at the current place, 0 at the end.
func (c *scanner) byteAt() byte {
	if c.at == len(c.s) {
		c.cut = true
		return 0
	}
	return c.s[c.at]
}

// str reads a string. It goes over nearly every byte of a file, so for speed it looks
// at eight at a time. plain may be false for a plain string.
func (c *scanner) str() (plain, ok bool) {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	var seen uint64 // all bits that were set in a byte
	s, at := c.s, c.at+1
	for {
		for ; at+8 <= len(s); at += 8 {
			x := binary.LittleEndian.Uint64(s[at:])
			quote, escape := x^'"'*ones, x^'\\'*ones // the byte of a quote or an escape becomes 0
			// A byte below n loses its highest bit's zero when n is taken away; the lowest such bit is exact.
			stop := ((quote-ones)&^quote | (escape-ones)&^escape | (x-' '*ones)&^x) & highs
			seen |= x
			if stop != 0 {
				at += bits.TrailingZeros64(stop) / 8
				break
			}
		}
		if at >= len(s) {
			c.at, c.cut = at, true
			return false, false
		}
		switch b := s[at]; {
		case b == '"':
			c.at = at + 1
			return seen&highs == 0, true
		case b == '\\':
			seen = highs
			n := escapeLength(s[at:])
			if n <= 0 {
				c.at, c.cut = at, n == 0
				return false, false
			}
			at += n
		case b < ' ':
			c.at = at
			return false, false
		default:
			seen |= uint64(b)
			at++
		}
	}
}

// escapeLength is the length of the escape sequence that s begins with: 0 where s
// ends in it, -1 where it is invalid.
func escapeLength(s []byte) int {
	if len(s) < 2 {
		return 0
	}
	switch s[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		for i := 2; i < 6; i++ {
			if i == len(s) {
				return 0
			}
			if b := s[i]; (b < '0' || b > '9') && (b|0x20 < 'a' || b|0x20 > 'f') {
				return -1
			}
		}
		return 6
	}
	return -1
}

// window is the part of a stream that a scanner looks at.
type window struct {
	r   io.Reader
	s   []byte // of buf
	buf []byte
}

// grow reads at least as many bytes as there are, so that the repeated scans of a
// long value take linear time. It reports whether it read any.
func (w *window) grow() bool {
	const least = 128 << 10
	have := len(w.s)
	if 2*have >= len(w.buf) {
		w.buf = make([]byte, max(least, 4*have))
	}
	copy(w.buf, w.s)
	n, _ := io.ReadAtLeast(w.r, w.buf[have:], max(have, 1)) // the reader returns its error again
	w.s = w.buf[:have+n]
	return n > 0
}
