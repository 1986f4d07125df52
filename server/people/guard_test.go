package people

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/server/known"
)

// TestBusy sends more requests than are handled at a time: one more waits until a
// slot is free, or is answered with 503.
func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leave := make(chan struct{})
		g := &Guard{Fail: func(rw http.ResponseWriter, _ *http.Request, err error) {
			var told *known.AnswerError
			require.ErrorAs(t, err, &told)
			rw.WriteHeader(told.Code)
		}}
		h := g.limit(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { <-leave }))
		ask := func() chan *httptest.ResponseRecorder {
			answered := make(chan *httptest.ResponseRecorder, 1)
			go func() {
				rec := httptest.NewRecorder()
				h.ServeHTTP(rec, httptest.NewRequest("GET", "http://127.0.0.1/", nil))
				answered <- rec
			}()
			return answered
		}
		for range maxConcurrent {
			ask()
		}
		synctest.Wait()
		late, gone := ask(), make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "http://127.0.0.1/", nil))
			close(gone)
		}()
		time.Sleep(maxWait / 2)
		cancel()
		<-gone // a cancelled request no longer waits
		begin := time.Now()
		rec := <-late
		assert.Equal(t, maxWait/2, time.Since(begin))
		assert.Equal(t, http.StatusServiceUnavailable, rec.Code)
		assert.Equal(t, "5", rec.Header().Get("Retry-After"))
		lucky := ask()
		time.Sleep(maxWait / 2)
		leave <- struct{}{}
		synctest.Wait() // it has the slot now
		leave <- struct{}{}
		close(leave)
		assert.Equal(t, http.StatusOK, (<-lucky).Code)
	})
}

// A server whose clock is ahead signs everybody out: who signs in after that is in, on each server, and the next
// time ends those sessions too.
func TestEndAllAhead(t *testing.T) {
	now := time.Date(2026, 3, 2, 10, 0, 0, 400_500, time.UTC)
	ctx := t.Context()
	shared, err := store.Open(ctx, "mem://"+t.Name())
	require.NoError(t, err)
	guard := func() *Guard {
		return &Guard{Token: "a-token", Store: shared, Now: func() time.Time { return now }, Audit: known.NewAudit(shared)}
	}
	valid := func(on *Guard, cookie string) bool { _, as := on.read(cookie, now); return as != "" }
	begin := func(on *Guard) string {
		rec := httptest.NewRecorder()
		r := httptest.NewRequest("POST", "/login", strings.NewReader("token=a-token"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		on.SignIn(rec, r)
		return rec.Result().Cookies()[0].Value
	}
	one, other, fresh := guard(), guard(), guard()
	before := begin(one)
	require.NoError(t, one.endAll(ctx, now.Add(time.Hour)))
	after := begin(one)
	require.NoError(t, other.Tick(ctx, now))
	for _, on := range []*Guard{one, other} {
		assert.Equal(t, []bool{false, true}, []bool{valid(on, before), valid(on, after)})
	}
	require.NoError(t, fresh.endAll(ctx, now.Add(time.Minute)), "it has not read yet who was signed out")
	again := begin(fresh)
	one.nextAt = time.Time{}
	require.NoError(t, one.Tick(ctx, now))
	for _, on := range []*Guard{one, fresh} {
		assert.Equal(t, []bool{false, false, true}, []bool{valid(on, before), valid(on, after), valid(on, again)})
	}
	require.NoError(t, fresh.endAll(ctx, now))
	assert.False(t, valid(fresh, again), "within the same millisecond")
	assert.True(t, valid(fresh, begin(fresh)))
}
