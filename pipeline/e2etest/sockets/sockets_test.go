package sockets

import (
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		network, address string
		want             string // of the address, without the port
		open             bool
	}{
		{"tcp", "127.0.0.1:0", "tcp 127.0.0.1", false},
		{"tcp", ":0", "tcp6 [::]", true},
		{"tcp4", ":0", "tcp 0.0.0.0", true},
		{"udp", "127.0.0.1:0", "udp 127.0.0.1", false},
		{"udp", ":0", "udp6 [::]", true},
	} {
		t.Run(c.network+" "+c.address, func(t *testing.T) {
			var at net.Addr
			if c.network[:3] == "tcp" {
				l, err := net.Listen(c.network, c.address)
				require.NoError(t, err)
				defer func() { require.NoError(t, l.Close()) }()
				at = l.Addr()
			} else {
				l, err := net.ListenPacket(c.network, c.address)
				require.NoError(t, err)
				defer func() { require.NoError(t, l.Close()) }()
				at = l.LocalAddr()
			}
			_, port, err := net.SplitHostPort(at.String())
			require.NoError(t, err)
			got, err := Of(os.Getpid())
			require.NoError(t, err)
			var said []string
			for _, s := range got {
				said = append(said, s.String())
				if s.String() == c.want+":"+port {
					require.Equal(t, c.open, s.Open())
				}
			}
			require.Contains(t, said, c.want+":"+port)
		})
	}
}
