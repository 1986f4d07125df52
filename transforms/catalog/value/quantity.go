package value

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Measure is a number with its unit.
type Measure struct {
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// unit is a unit of a dimension, whose values are factor times those of its first unit.
type unit struct {
	dimension string
	factor    float64
}

// units are the units by their names.
var units = map[string]unit{
	"kg": {"mass", 1}, "g": {"mass", 1e-3}, "mg": {"mass", 1e-6}, "t": {"mass", 1e3}, "lb": {"mass", 0.45359237}, "oz": {"mass", 0.028349523125},
	"m": {"length", 1}, "dm": {"length", 0.1}, "cm": {"length", 1e-2}, "mm": {"length", 1e-3}, "km": {"length", 1e3}, "in": {"length", 0.0254}, "ft": {"length", 0.3048},
	"m²": {"area", 1}, "cm²": {"area", 1e-4}, "mm²": {"area", 1e-6},
	"l": {"volume", 1}, "dl": {"volume", 0.1}, "cl": {"volume", 1e-2}, "ml": {"volume", 1e-3}, "m³": {"volume", 1e3}, "cm³": {"volume", 1e-3},
	"W": {"power", 1}, "kW": {"power", 1e3}, "mW": {"power", 1e-3}, "MW": {"power", 1e6},
	"Wh": {"energy", 1}, "kWh": {"energy", 1e3},
	"V": {"voltage", 1}, "mV": {"voltage", 1e-3}, "kV": {"voltage", 1e3}, "A": {"current", 1}, "mA": {"current", 1e-3},
	"Ah": {"charge", 1}, "mAh": {"charge", 1e-3}, "Hz": {"frequency", 1}, "kHz": {"frequency", 1e3}, "MHz": {"frequency", 1e6}, "GHz": {"frequency", 1e9},
	"s": {"time", 1}, "ms": {"time", 1e-3}, "min": {"time", 60}, "h": {"time", 3600}, "d": {"time", 86400},
	"B": {"data", 1}, "kB": {"data", 1e3}, "MB": {"data", 1e6}, "GB": {"data", 1e9}, "TB": {"data", 1e12}, "KiB": {"data", 1 << 10}, "MiB": {"data", 1 << 20}, "GiB": {"data", 1 << 30},
	"lm": {"light", 1}, "cd": {"intensity", 1}, "dB": {"sound", 1}, "px": {"pixels", 1}, "%": {"share", 1}, "°C": {"temperature", 1}, "K": {"kelvin", 1},
}

// other names of units, in small letters.
var unitNames = map[string]string{
	"lbs": "lb", "pound": "lb", "pounds": "lb", "ounce": "oz", "ounces": "oz", "kilogram": "kg", "gram": "g", "grams": "g", "gramm": "g", "kilo": "kg", "kilos": "kg",
	"inch": "in", "inches": "in", "zoll": "in", "\"": "in", "″": "in", "”": "in", "feet": "ft", "foot": "ft", "'": "ft", "meter": "m", "metre": "m", "meters": "m", "metres": "m",
	"qm": "m²", "m2": "m²", "m^2": "m²", "m3": "m³", "m^3": "m³", "cm2": "cm²", "cm3": "cm³", "liter": "l", "litre": "l", "liters": "l", "litres": "l", "ltr": "l",
	"watt": "W", "watts": "W", "volt": "V", "volts": "V", "ampere": "A", "stunden": "h", "hours": "h", "hour": "h", "std": "h", "minutes": "min", "minuten": "min", "sec": "s", "seconds": "s",
	"tage": "d", "days": "d", "day": "d", "lumen": "lm", "pixel": "px", "pixels": "px", "percent": "%", "prozent": "%", "kb": "kB", "cc": "cm³",
	"グラム": "g", "キログラム": "kg", "センチ": "cm", "センチメートル": "cm", "ミリメートル": "mm", "メートル": "m", "リットル": "l", "ミリリットル": "ml", "トン": "t", "インチ": "in", "パーセント": "%", "ワット": "W", "ボルト": "V",
}

// powers matches areas and volumes without their signs: m2, cm^3.
var powers = regexp.MustCompile(`[cm]?m\^?[23]\b`)

// ParseUnit checks the name of a unit; "" is allowed.
func ParseUnit(name string) error {
	if _, ok := units[name]; name != "" && !ok {
		return fmt.Errorf("unit %q: want one of %s", name, unitList())
	}
	return nil
}

func unitList() string { return strings.Join(slices.Sorted(maps.Keys(units)), ", ") }

// Quantity reads the only number in a text and the unit after it: "2,5 kg", `15.6"`. With
// want the value is converted to that unit, which is also the unit of a text without one.
func Quantity(text string, l Locale, want string) (Measure, error) {
	n, err := find(powers.ReplaceAllStringFunc(digits(text), func(s string) string { return strings.NewReplacer("^", "", "2", "²", "3", "³").Replace(s) }))
	if err != nil {
		return Measure{}, err
	}
	f, err := n.float(text, l)
	if err != nil {
		return Measure{}, err
	}
	name := unitOf(n.after)
	switch {
	case name == "" && strings.TrimSpace(n.after) == "" && want != "":
		return Measure{f, want}, nil
	case name == "":
		return Measure{}, fmt.Errorf("%q names no unit that is known (%s): choose its number by a regexp, and set unit", text, unitList())
	case want == "" || want == name:
		return Measure{f, name}, nil
	case units[want].dimension != units[name].dimension:
		return Measure{}, fmt.Errorf("%q is in %s, which cannot be converted to %s", text, name, want)
	}
	return Measure{rounded(f * units[name].factor / units[want].factor), want}, nil
}

// unitOf returns the unit with which a text begins, "" for none.
func unitOf(after string) string {
	word := strings.TrimSpace(after)
	if i := strings.IndexFunc(word, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(",;()/", r) }); i >= 0 {
		word = word[:i]
	}
	word = strings.TrimRight(word, ".")
	if _, ok := units[word]; ok {
		return word
	}
	lower := strings.ToLower(word)
	if name, ok := unitNames[lower]; ok {
		return name
	}
	found := ""
	for name := range units { // KG and Kw are clear, and only one unit is meant
		if strings.ToLower(name) == lower {
			if found != "" {
				return ""
			}
			found = name
		}
	}
	return found
}

// rounded removes the digits that only the conversion has made.
func rounded(f float64) float64 {
	if f == 0 || math.IsInf(f, 0) {
		return f
	}
	scale := math.Pow(10, 12-math.Ceil(math.Log10(math.Abs(f))))
	if r := math.Round(f*scale) / scale; !math.IsInf(scale, 0) && !math.IsNaN(r) && !math.IsInf(r, 0) {
		return r
	}
	return f
}
