package freeport

import (
	"net"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFind(t *testing.T) {
	ports, err := Find(50)
	require.NoError(t, err)
	require.Len(t, ports, 50)
	slices.Sort(ports)
	require.Len(t, slices.Compact(ports), 50)
	for _, p := range ports {
		n, err := strconv.Atoi(p)
		require.NoError(t, err)
		require.True(t, first <= n && n < end, p)
		l, err := net.Listen("tcp", "127.0.0.1:"+p)
		require.NoError(t, err)
		require.NoError(t, l.Close())
	}
}
