package rows

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/stretchr/testify/assert"
)

type inner struct {
	Name string `parquet:"name,dict" doc:"its name"`
	Size int64  `parquet:"size" doc:"bytes"`
}

type row struct {
	inner
	There bool       `parquet:"there" doc:"whether"`
	At    time.Time  `parquet:"at,timestamp(microsecond)" doc:"when"`
	Gone  *time.Time `parquet:"gone,optional,timestamp(microsecond)" doc:"until"`
	Count *int64     `parquet:"count,optional" doc:"how many"`
	Words []string   `parquet:"words,list" doc:"words"`
	Was   *string    `parquet:"was,optional" doc:"before"`
	Now   JSON       `parquet:"now,json" doc:"after"`
	Parts []part     `parquet:"parts,list" doc:"parts"`
}

type part struct {
	Name string `parquet:"name" json:"name"`
	Size *int64 `parquet:"size,optional" json:"size,omitempty"`
}

func samples() []row {
	at := time.Date(2026, 1, 28, 1, 2, 3, 456789000, time.UTC)
	n, was := int64(-7), "=1+1"
	return []row{
		{inner: inner{"=cmd|' /C calc'!A0", 1}, There: true, At: at, Gone: &at, Count: &n, Words: []string{"a\nb", "<c>"}, Was: &was, Now: `{"a": [1, "ü"]}`, Parts: []part{{"<b>", &n}, {Name: "c"}}},
		{inner: inner{"plain, \"quoted\"\nand two lines", -2}, At: at, Now: "null"},
		{inner: inner{"'quoted", 3}, At: at, Now: "-1"},
	}
}

func all(rows []row) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func TestParquet(t *testing.T) {
	var b bytes.Buffer
	n, err := Write(Parquet, &b, "samples/1", all(samples()))
	require.NoError(t, err)
	require.EqualValues(t, 3, n)
	got, err := parquet.Read[row](bytes.NewReader(b.Bytes()), int64(b.Len()))
	require.NoError(t, err)
	want := samples()
	for i := range got {
		got[i].At = got[i].At.UTC()
		if got[i].Gone != nil {
			*got[i].Gone = got[i].Gone.UTC()
		}
		if len(got[i].Words) == 0 {
			got[i].Words = nil
		}
		if len(got[i].Parts) == 0 {
			got[i].Parts = nil
		}
	}
	require.Equal(t, want, got)
	f, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	require.NoError(t, err)
	name, ok := f.Lookup("export")
	require.True(t, ok)
	require.Equal(t, "samples/1", name)
	var names []string
	for _, c := range columns(reflect.TypeFor[row]()) {
		names = append(names, c.Name)
	}
	var columns []string
	for _, c := range f.Schema().Fields() {
		columns = append(columns, c.Name())
	}
	require.Equal(t, names, columns)
}

func TestJSONL(t *testing.T) {
	var b bytes.Buffer
	_, err := Write(JSONL, &b, "", all(samples()))
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	require.Len(t, lines, 3)
	require.Equal(t, `{"name":"=cmd|' /C calc'!A0","size":1,"there":true,"at":"2026-01-28T01:02:03.456789Z","gone":"2026-01-28T01:02:03.456789Z","count":-7,"words":["a\nb","<c>"],"was":"=1+1","now":{"a":[1,"ü"]},"parts":[{"name":"<b>","size":-7},{"name":"c"}]}`, lines[0])
	require.Equal(t, `{"name":"plain, \"quoted\"\nand two lines","size":-2,"there":false,"at":"2026-01-28T01:02:03.456789Z","gone":null,"count":null,"words":[],"was":null,"now":null,"parts":[]}`, lines[1])

	text, err := schema(reflect.TypeFor[row](), "samples, version 1", "Rows of a test.")
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	require.NoError(t, c.AddResource("s.json", doc))
	schema, err := c.Compile("s.json")
	require.NoError(t, err)
	for _, line := range lines {
		var v any
		require.NoError(t, json.Unmarshal([]byte(line), &v))
		require.NoError(t, schema.Validate(v))
		v.(map[string]any)["size"] = "many"
		require.Error(t, schema.Validate(v))
		delete(v.(map[string]any), "size")
		require.Error(t, schema.Validate(v))
	}
}

func TestCSV(t *testing.T) {
	var b bytes.Buffer
	_, err := Write(CSV, &b, "", all(samples()))
	require.NoError(t, err)
	got, err := csv.NewReader(&b).ReadAll()
	require.NoError(t, err)
	require.Equal(t, [][]string{
		{"name", "size", "there", "at", "gone", "count", "words", "was", "now", "parts"},
		{"'=cmd|' /C calc'!A0", "1", "true", "2026-01-28T01:02:03.456789Z", "2026-01-28T01:02:03.456789Z", "-7", `["a\nb","<c>"]`, "'=1+1", `{"a":[1,"ü"]}`, `[{"name":"<b>","size":-7},{"name":"c"}]`},
		{"plain, \"quoted\"\nand two lines", "-2", "false", "2026-01-28T01:02:03.456789Z", "", "", "[]", "", "null", "[]"},
		{"''quoted", "3", "false", "2026-01-28T01:02:03.456789Z", "", "", "[]", "", "'-1", "[]"},
	}, got)
}

// No cell of a text begins as a formula does, and each text can be restored.
func FuzzGuarded(f *testing.F) {
	for _, s := range []string{"", "=1", "+1", "-1", "@a", "'", "''", "\t=1", "\r=1", "＝1", "a=1", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		g := guarded(s)
		assert.True(t, g == "" || !strings.ContainsRune("=+-@\t\r\n＝＋－＠", []rune(g)[0]), "%q begins a formula", g)
		assert.Equal(t, s, strings.TrimPrefix(g, "'"), g)
	})
}

// The memory for a file does not grow with its rows.
func TestMemoryOfManyRows(t *testing.T) {
	for _, f := range Formats {
		peak := func(n int) (most uint64) {
			text := strings.Repeat("x", 2000)
			_, err := Write(f, discard{}, "", func(yield func(row, error) bool) {
				for i := range n {
					if i%1_000 == 999 {
						runtime.GC()
						var m runtime.MemStats
						runtime.ReadMemStats(&m)
						most = max(most, m.HeapAlloc)
					}
					if !yield(row{inner: inner{Name: fmt.Sprint(i, text)}, Now: "1"}, nil) {
						return
					}
				}
			})
			require.NoError(t, err)
			return most
		}
		small := peak(10_000) // more than a row group of Parquet
		large := peak(50_000)
		assert.LessOrEqual(t, large, small+small/2, "%s: %d MiB for 10,000 rows and %d MiB for five times as many", f, small>>20, large>>20)
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

func TestUnknownType(t *testing.T) {
	type bad struct {
		A float32 `parquet:"a" doc:"a"`
	}
	require.Panics(t, func() { columns(reflect.TypeFor[bad]()) })
	_, err := newWriter[inner]("xlsx", discard{}, "")
	require.ErrorContains(t, err, "xlsx")
}
