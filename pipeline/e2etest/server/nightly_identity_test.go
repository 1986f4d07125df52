//go:build e2e && nightly

package server

import "testing"

// TestTenThousandSignedRequests is TestSignedRequests at the size of a run.
func TestTenThousandSignedRequests(t *testing.T) { verified(t, 10_000, 500) }
