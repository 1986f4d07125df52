package fault

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

func dialed(e syscall.Errno) error {
	return fmt.Errorf("x: %w", &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", e)})
}

type lite int

func (lite) Error() string { return "sqlite" }
func (l lite) Code() int   { return int(l) }

// The same error is a site's or ours by the part that it comes from.
func TestOf(t *testing.T) {
	pg := func(code string) error { return fmt.Errorf("x: %w", &pgconn.PgError{Code: code}) }
	refused := &net.DNSError{Err: "read udp 127.0.0.1:40000->127.0.0.53:53: read: connection refused", Name: "a.example"}
	for _, c := range []struct {
		part  part
		err   error
		want  whose
		lacks string
	}{
		{Web, dialed(syscall.ECONNREFUSED), Theirs, ""},
		{Database, dialed(syscall.ECONNREFUSED), Ours, "database cannot be reached"},
		{Store, dialed(syscall.ECONNREFUSED), Ours, "store cannot be reached"},
		{Web, dialed(syscall.EMFILE), Ours, "open files"},
		{Database, dialed(syscall.EMFILE), Ours, "open files"},
		{Store, &os.PathError{Op: "open", Path: "a", Err: syscall.EMFILE}, Ours, "open files"},
		{Web, refused, Ours, "resolver"},
		{Web, &net.DNSError{Err: "no such host", IsNotFound: true}, Theirs, ""},
		{Store, refused, Ours, "store cannot be reached"},
		{Store, &os.PathError{Op: "write", Path: "a", Err: syscall.ENOSPC}, Ours, "disk is full"},
		{Store, &os.PathError{Op: "write", Path: "a", Err: syscall.EROFS}, Ours, "read-only"},
		{Store, os.ErrNotExist, unknown, ""},
		{Store, errors.New("bad JSON"), unknown, ""},
		{Database, pg("57P01"), Ours, "look whether it runs"},
		{Database, pg("53100"), Ours, "space"},
		{Database, pg("53300"), Ours, "max_connections"},
		{Database, pg("25006"), Ours, "primary"},
		{Database, pg("28P01"), Ours, "password"},
		{Database, pg("22021"), Theirs, ""},
		{Database, pg("23505"), Theirs, ""},
		{Database, pg("42601"), unknown, ""},
		{Database, io.EOF, Ours, "cannot be reached"},
		{Database, lite(13), Ours, "grow"},
		{Database, lite(10 | 3<<8), Ours, "written"},
		{Database, lite(14), Ours, "opened"},
		{Database, lite(19), Theirs, ""},
		{Database, lite(1), unknown, ""},
		{Web, nil, unknown, ""},
	} {
		whose, lack := Of(c.part, c.err)
		require.Equal(t, c.want, whose, "%d %v", c.part, c.err)
		require.Equal(t, c.want == Ours, lack != nil, "%v", c.err)
		if lack != nil {
			require.Contains(t, lack.Lacks, c.lacks, "%v", c.err)
			require.ErrorIs(t, lack, c.err)
		}
	}
}
