package lease

import (
	"testing"
)

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"holder":{"host":"a","pid":1},"token":"x","expires_at":"2026-01-01T00:00:00Z"}`))
	f.Add([]byte(`{"released":true}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decode(b)
		if err != nil {
			return
		}
		r.Holder.dead(CurrentHolder(), "/proc")
		if again, err := decode(encode(r)); err != nil || string(encode(again)) != string(encode(r)) {
			t.Errorf("decoded %+v, encoded and decoded again %+v (%v)", r, again, err)
		}
	})
}
