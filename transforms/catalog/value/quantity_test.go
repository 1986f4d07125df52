package value

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestQuantity(t *testing.T) {
	de, err := ParseLocale("de-DE")
	require.NoError(t, err)
	f := func(text, want string, value float64, unit string) {
		t.Helper()
		m, err := Quantity(text, de, want)
		assert.True(t, err == nil && m.Value == value && m.Unit == unit, "%q in %s: %v, %v; want %v %s", text, want, m, err, value, unit)
	}
	f("2,5 kg", "", 2.5, "kg")
	f("１５㎝", "", 15, "cm")
	f("20㎡", "", 20, "m²")
	f("１，５㎏", "g", 1500, "g")
	f("3㎥", "", 3, "m³")
	f("４５０㎖", "l", 0.45, "l")
	f("２１，５㌢", "", 21.5, "cm")
	f("500㌘", "kg", 0.5, "kg")
	f("60㎐", "", 60, "Hz")
	f("36,6℃", "", 36.6, "°C")
	f("2ℓ", "ml", 2000, "ml")
	f("250 ml", "l", 0.25, "l")
	f("Gewicht: 1.200 Gramm", "kg", 1.2, "kg")
	f("12", "W", 12, "W")
	f("15,6″", "cm", 39.624, "cm")
	f("1,5 KWH", "Wh", 1500, "Wh")
	f("4 m2", "cm²", 40000, "cm²")
	f("0 mm", "m", 0, "m")
	m, err := Quantity("5 Stk", de, "")
	assert.Error(t, err, m)
}

func TestTime(t *testing.T) {
	us, err := ParseLocale("en-US")
	require.NoError(t, err)
	seoul, err := time.LoadLocation("Asia/Seoul")
	require.NoError(t, err)
	f := func(text string, zone *time.Location, want string) {
		t.Helper()
		got, err := Time(text, us, zone)
		assert.Equal(t, want, got, "%q: %v", text, err)
	}
	f("2026-11-03T05:04:03Z", nil, "2026-11-03T05:04:03Z")
	f("2026-11-03T05:04:03Z", seoul, "2026-11-03T14:04:03+09:00")
	f("2026-11-03T05:04", seoul, "2026-11-03T05:04:00+09:00")
	f("2026-11-03 05:04:03.123", seoul, "2026-11-03T05:04:03+09:00")
	f("11/03/2026 12:30 a.m.", seoul, "2026-11-03T00:30:00+09:00")
	f("November 3, 2026 at 1:05 PM", seoul, "2026-11-03T13:05:00+09:00")
	f("2026-11-03 05:04", nil, "")
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	f("2026-07-01 14:05 UTC", seoul, "2026-07-01T23:05:00+09:00")
	f("July 1, 2026, 2:05 PM (GMT)", nil, "2026-07-01T14:05:00Z")
	f("2026-07-01 14:05 +0200", seoul, "2026-07-01T21:05:00+09:00")
	f("2026-07-01 14:05:00 −03:30", nil, "2026-07-01T14:05:00-03:30")
	f("2026-07-01 14:05 GMT+02:00", berlin, "2026-07-01T14:05:00+02:00")
	f("2026-07-01 14:05 or 15:05", berlin, "")
	f("2026-07-01 14:05 UTC+9", berlin, "2026-07-01T07:05:00+02:00")
	f("14:05 CEST, July 1, 2026", seoul, "2026-07-01T21:05:00+09:00")
	f("Tue, 03 Nov 2026 14:05:00 EST", seoul, "2026-11-04T04:05:00+09:00")
	f("Tue, 03 Nov 2026 14:05:00 GMT", seoul, "2026-11-03T23:05:00+09:00")
	f("2026-07-01 14:05 CST", seoul, "")
	f("2026-07-01 14:05 - 07/01/2026", seoul, "2026-07-01T14:05:00+09:00")
	f("2026-03-29 02:30", berlin, "")
	f("2026-10-25 02:30", berlin, "")
	f("2026-10-25 02:00", berlin, "")
	f("2026-10-25 01:59", berlin, "2026-10-25T01:59:00+02:00")
	f("2026-10-25 03:00", berlin, "2026-10-25T03:00:00+01:00")
	f("2026-10-25 02:30 CET", berlin, "2026-10-25T02:30:00+01:00")
	f("2026-03-29 03:00", berlin, "2026-03-29T03:00:00+02:00")
	f("2026-11-03 25:04", seoul, "")
}

// A quantity in another unit is the same quantity.
func FuzzQuantity(f *testing.F) {
	f.Add("2,5 kg", "g")
	f.Add("15.6\"", "cm")
	f.Add("1e3 W", "kW")
	f.Fuzz(func(t *testing.T, text, want string) {
		if ParseUnit(want) != nil || want == "" {
			return
		}
		plain, err := Quantity(text, Locale{}, "")
		if err != nil {
			return
		}
		m, err := Quantity(text, Locale{}, want)
		if err != nil {
			return
		}
		a, b := plain.Value*units[plain.Unit].factor, m.Value*units[m.Unit].factor
		diff := math.Abs(a - b)
		assert.True(t, diff <= 1e-9*math.Abs(a)+1e-300 || math.IsInf(a, 0), "%q: %v is not %v", text, plain, m)
	})
}

func FuzzTime(f *testing.F) {
	f.Add("3. März 2026, 14:05 Uhr")
	f.Add("2026-11-03T05:04:03Z")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Time(text, Locale{}, time.UTC)
		if err != nil {
			return
		}
		_, err = time.Parse(time.RFC3339, got)
		assert.NoError(t, err)
	})
}
