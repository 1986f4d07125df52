package server

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/store"
)

const (
	// sessionAge is how long a browser stays signed in.
	sessionAge = 7 * 24 * time.Hour
	// endedInterval is how often a server reads which sessions other servers ended.
	endedInterval = 30 * time.Second
	// endedPrefix has an object for each session that was ended before its age ends it,
	// and an object all-{milliseconds} for each time that all sessions were ended.
	endedPrefix = "sessions/ended/"
	endedAll    = "all-"
)

// sessions are the sessions of browsers whose users gave the token. A cookie is
// "id.began.proof", where the proof is an HMAC with the token as key. So it is valid
// on each server of the store and after a restart, and a new token ends all
// sessions.
type sessions struct {
	store store.Store
	token string

	mu        sync.Mutex
	ended     map[string]bool
	notBefore time.Time // sessions that began until then have ended
	nextAt    time.Time
}

func (s *sessions) proof(id, began string) string {
	m := hmac.New(sha256.New, []byte(s.token))
	m.Write([]byte("dashboard session " + id + " " + began))
	return hex.EncodeToString(m.Sum(nil))
}

func (s *sessions) begin(now time.Time) (cookie string) {
	id, began := rand.Text(), strconv.FormatInt(now.UnixMilli(), 10)
	return id + "." + began + "." + s.proof(id, began)
}

// read returns the id of a cookie's session, and whether the session is valid.
func (s *sessions) read(cookie string, now time.Time) (id string, ok bool) {
	id, rest, _ := strings.Cut(cookie, ".")
	began, proof, _ := strings.Cut(rest, ".")
	if !equal(proof, s.proof(id, began)) {
		return "", false
	}
	ms, err := strconv.ParseInt(began, 10, 64)
	at := time.UnixMilli(ms)
	s.mu.Lock()
	defer s.mu.Unlock()
	return id, err == nil && now.Sub(at) < sessionAge && at.After(s.notBefore) && !s.ended[id]
}

func (s *sessions) end(ctx context.Context, cookie string, now time.Time) error {
	id, ok := s.read(cookie, now)
	if !ok {
		return nil
	}
	if err := s.mark(ctx, id); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(id)
	return nil
}

func (s *sessions) endAll(ctx context.Context, now time.Time) error {
	name := endedAll + strconv.FormatInt(now.UnixMilli(), 10)
	if err := s.mark(ctx, name); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(name)
	return nil
}

func (s *sessions) mark(ctx context.Context, name string) error {
	return store.Write(ctx, s.store, endedPrefix+name, nil, store.PutOptions{})
}

// note remembers an ended session by its object's name; the caller holds mu.
func (s *sessions) note(name string) {
	text, all := strings.CutPrefix(name, endedAll)
	if !all {
		if s.ended == nil {
			s.ended = map[string]bool{}
		}
		s.ended[name] = true
		return
	}
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil && time.UnixMilli(ms).After(s.notBefore) {
		s.notBefore = time.UnixMilli(ms)
	}
}

// tick reads which sessions other servers ended, and removes objects of sessions that
// their age has ended.
func (s *sessions) tick(ctx context.Context, now time.Time) error {
	if s.token == "" || now.Before(s.nextAt) {
		return nil
	}
	s.nextAt = now.Add(endedInterval)
	var old []string
	for o, err := range s.store.List(ctx, endedPrefix) {
		if err != nil {
			return fmt.Errorf("listing %s: %w", endedPrefix, err)
		}
		if now.Sub(o.ModTime) > sessionAge+time.Hour {
			old = append(old, o.Key)
			continue
		}
		s.mu.Lock()
		s.note(path.Base(o.Key))
		s.mu.Unlock()
	}
	for _, key := range old {
		if err := store.Retry(ctx, func() error { return s.store.Delete(ctx, key) }); err != nil {
			return fmt.Errorf("removing %s: %w", key, err)
		}
	}
	return nil
}
