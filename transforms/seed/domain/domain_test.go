package domain

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/publicsuffix"

	"github.com/newsfork/seed-engine/transforms/parse/cases"
)

func TestFromURL(t *testing.T) {
	f := func(raw, hostname, id string) {
		t.Helper()
		d, err := FromURL(raw, "SG")
		if err != nil {
			t.Errorf("FromURL(%q): %v", raw, err)
			return
		}
		assert.True(t, d.Hostname == hostname && d.ID == id && d.InputURL == raw && d.Country == "SG",
			"FromURL(%q) = %+v, want hostname %q and id %q", raw, d, hostname, id)
		assert.Equal(t, d.Authority+":sg:"+d.Registrable, d.ID, "FromURL(%q): id", raw)
		_, _, _, _, ok := splitID(d.ID)
		assert.True(t, ok, "FromURL(%q): id %q is not valid", raw, d.ID)
	}
	f("https://www.mom.gov.sg/newsroom", "mom.gov.sg", "gov:sg:mom.gov.sg")
	f("https://a.b.mom.gov.sg", "a.b.mom.gov.sg", "gov:sg:mom.gov.sg")
	// www. and public suffixes
	f("https://www.gov.uk/x", "www.gov.uk", "gov:sg:www.gov.uk")
	f("https://www.gov.sg/", "www.gov.sg", "gov:sg:www.gov.sg")
	f("https://www.www.gov.uk/", "www.gov.uk", "gov:sg:www.gov.uk")
	f("https://gov.sg/", "gov.sg", "gov:sg:gov.sg")
	f("https://www.com/", "www.com", "com:sg:www.com")
	f("https://www.ck/", "www.ck", "other:sg:www.ck")
	f("https://www.www.com/", "www.com", "com:sg:www.com")
	f("https://www.blogspot.com/", "www.blogspot.com", "com:sg:www.blogspot.com")
	f("https://amazonaws.com/", "amazonaws.com", "com:sg:amazonaws.com") // parent of private rules only
	f("https://www2.example.com/", "www2.example.com", "com:sg:example.com")
	// as people write them
	f("  HTTPS://User:p%40ss@WWW.Example.COM:8443/Path?q=@x#y \n", "example.com", "com:sg:example.com")
	f("example.com/path", "example.com", "com:sg:example.com")
	f("example.com:8080/path", "example.com", "com:sg:example.com")
	f("example.com/a@b", "example.com", "com:sg:example.com")
	f("example.com?to=a@b.com", "example.com", "com:sg:example.com")
	f("//example.com/path", "example.com", "com:sg:example.com")
	f("http:/example.com", "example.com", "com:sg:example.com")
	f(`http:\\example.com\path`, "example.com", "com:sg:example.com")
	f("https:example.com", "example.com", "com:sg:example.com")
	f("ftp://ftp.example.org/pub", "ftp.example.org", "org:sg:example.org")
	f("https://example.com.", "example.com", "com:sg:example.com")
	f("https://example.com:/", "example.com", "com:sg:example.com")
	f("https://exam\nple.com/", "example.com", "com:sg:example.com")
	f("\ufeffhttps://example.com", "example.com", "com:sg:example.com")
	f("https://under_score.example.com/", "under_score.example.com", "com:sg:example.com")
	f("https://r3---sn-abc.example.com/", "r3---sn-abc.example.com", "com:sg:example.com")
	// IDN, UTS 46 non-transitional
	f("https://www.Bücher.example.de/", "xn--bcher-kva.example.de", "other:sg:example.de")
	f("https://faß.de", "xn--fa-hia.de", "other:sg:xn--fa-hia.de")
	f("https://한국.한국/", "xn--3e0b707e.xn--3e0b707e", "other:sg:xn--3e0b707e.xn--3e0b707e")
	f("https://食狮.公司.cn", "xn--85x722f.xn--55qx5d.cn", "com:sg:xn--85x722f.xn--55qx5d.cn")
	f("https://XN--BCHER-KVA.de", "xn--bcher-kva.de", "other:sg:xn--bcher-kva.de")
	f("https://example。com。/", "example.com", "com:sg:example.com")
	f("https://b%C3%BCcher.de/", "xn--bcher-kva.de", "other:sg:xn--bcher-kva.de")
}

func TestFromURLRefuses(t *testing.T) {
	f := func(raw string, want error) {
		t.Helper()
		d, err := FromURL(raw, "sg")
		assert.ErrorIs(t, err, want, "FromURL(%q) = %+v", raw, d)
	}
	f("", ErrNoHost)
	f(" \t", ErrNoHost)
	f("https://", ErrNoHost)
	f("https:///path", ErrNoHost)
	f("https://:80/", ErrNoHost)
	f("https://./", ErrNoHost)
	f("/path/only", ErrNoHost)
	f("?q", ErrNoHost)
	f("mailto:someone@example.com", ErrNoHost)
	f("someone@example.com", ErrNoHost)
	f("javascript:void(0)", ErrNoHost)
	f("urn:isbn:123", ErrNoHost)
	f("file:///etc/hosts", ErrNoHost)
	f("http://127.0.0.1/", ErrIP)
	f("http://127.1/", ErrIP)
	f("http://0x7f.0.0.0x1/", ErrIP)
	f("http://2130706433/", ErrIP)
	f("http://[::1]:80/", ErrIP)
	f("http://::1/", ErrIP)
	f("http://1.2.3.4.:80", ErrIP)
	f("http://１２７.０.０.１/", ErrIP)
	f("http://[nonsense]/", ErrBadHost)
	f("http://localhost/", ErrSingleLabel)
	f("localhost:8080", ErrSingleLabel)
	f("com", ErrSingleLabel)
	f("https://https://example.com", ErrSingleLabel)
	f("http://shop.test/", ErrUnlisted)
	f("http://printer.local/", ErrUnlisted)
	f("http://api.internal/", ErrUnlisted)
	f("http://a..example.com/", ErrBadHost)
	f("http://.example.com/", ErrBadHost)
	f("http://exa mple.com/", ErrBadHost)
	f("http://example.com:99999/", ErrBadHost)
	f("http://example.com:80a/", ErrBadHost)
	f("http://-example.com/", ErrBadHost)
	f("http://example-.com/", ErrBadHost)
	f("http://under_score.com/", ErrBadHost)
	f("http://xn--a.com/", ErrBadHost)
	f("http://\xff\xfe.com/", ErrBadHost)
	f("http://exam%zzple.com/", ErrBadHost)
	f("http://exam%2Fple.com/", ErrBadHost)
	f("http://"+strings.Repeat("a", 64)+".com/", ErrBadHost)
	f("http://"+strings.Repeat("a.", 130)+"com/", ErrBadHost)
	for _, country := range []string{"", "s", "sgp", "s1", "한"} {
		_, err := FromURL("https://example.com", country)
		assert.ErrorIs(t, err, errCountry, "country %q", country)
	}
}

func TestFromRecord(t *testing.T) {
	f := func(raw, normalized, id, wantID, wantHost, wantCountry string, wantNotes ...Note) {
		t.Helper()
		d, notes, err := FromRecord(raw, normalized, id, "kr")
		if err != nil {
			t.Errorf("FromRecord(%q, %q, %q): %v", raw, normalized, id, err)
			return
		}
		if d.ID != wantID || d.Hostname != wantHost || d.Country != wantCountry || d.InputURL != raw ||
			!strings.HasSuffix(d.ID, ":"+d.Registrable) || !strings.HasPrefix(d.ID, d.Authority+":") {
			t.Errorf("FromRecord(%q, %q, %q) = %+v", raw, normalized, id, d)
		}
		assert.Equal(t, wantNotes, notes, "FromRecord(%q, %q, %q) notes", raw, normalized, id)
	}
	const mom = "gov:sg:mom.gov.sg"
	f("https://www.mom.gov.sg/newsroom", "mom.gov.sg", mom, mom, "mom.gov.sg", "SG")
	f("https://mom.gov.sg", "", mom, mom, "mom.gov.sg", "SG")
	f("https://www.news.mom.gov.sg/", "mom.gov.sg", mom, mom, "news.mom.gov.sg", "SG")
	f("https://www.gov.uk/", "www.gov.uk", "gov:gb:www.gov.uk", "gov:gb:www.gov.uk", "www.gov.uk", "GB")
	f("https://www.gov.uk/", "gov.uk", "gov:gb:gov.uk", "gov:gb:gov.uk", "www.gov.uk", "GB")
	f("https://www.s3.amazonaws.com/", "", "com:us:amazonaws.com", "com:us:amazonaws.com", "www.s3.amazonaws.com", "US")
	// the authority of a valid id is kept, whatever the table says
	f("https://mom.gov.sg", "mom.gov.sg", "com:sg:mom.gov.sg", "com:sg:mom.gov.sg", "mom.gov.sg", "SG")
	f("https://mom.gov.sg", "www.mom.gov.sg", mom, mom, "mom.gov.sg", "SG", noteDomainDisagrees)
	f("https://www.example.com/", "mom.gov.sg", mom, mom, "example.com", "SG", noteURLDisagrees)
	f("https://xmom.gov.sg/", "mom.gov.sg", mom, mom, "xmom.gov.sg", "SG", noteURLDisagrees)
	f("mailto:a@mom.gov.sg", "mom.gov.sg", mom, mom, "mom.gov.sg", "SG", noteURLUnusable)
	// an id of the older system is accepted; what ids have no more is derived
	f("https://www.who.int/", "who.int", "ngo:intl:who.int", "other:kr:who.int", "who.int", "KR")
	f("https://a.com/", "", "ngo:intl:who.int", "other:kr:who.int", "a.com", "KR", noteURLDisagrees)
	f("mailto:a@who.int", "", "intl:us:who.int", "other:us:who.int", "who.int", "US", noteURLUnusable)
	f("https://kbs.co.kr/", "", "media:kr:kbs.co.kr", "com:kr:kbs.co.kr", "kbs.co.kr", "KR")
	f("https://bücher.de/", "", "com:de:bücher.de", "com:de:xn--bcher-kva.de", "xn--bcher-kva.de", "DE")
	f("https://食狮.公司.cn/", "", "media:intl:食狮.公司.cn", "com:kr:xn--85x722f.xn--55qx5d.cn", "xn--85x722f.xn--55qx5d.cn", "KR")
	f("https://a.com/", "", "ngo:intl:b.a.com", "com:kr:a.com", "a.com", "KR", noteInvalidID)
	f("https://a.com/", "", "ngo:sgp:a.com", "com:kr:a.com", "a.com", "KR", noteInvalidID)
	f("https://a.com/", "", "mil:sg:a.com", "com:kr:a.com", "a.com", "KR", noteInvalidID)
	f("https://a.com/", "", "com:sg:A.com", "com:kr:a.com", "a.com", "KR", noteInvalidID)
	// without a valid id: from the URL and the partition's country
	f("https://www.moh.gov.sg/", "", "", "gov:kr:moh.gov.sg", "moh.gov.sg", "KR")
	f("https://www.moh.gov.sg/", "moh.gov.sg", "", "gov:kr:moh.gov.sg", "moh.gov.sg", "KR")
	f("https://www.moh.gov.sg/", "www.moh.gov.sg", "", "gov:kr:moh.gov.sg", "moh.gov.sg", "KR", noteDomainDisagrees)
	f("https://moh.gov.sg/", "moh.gov.sg", "GOV:SG:moh.gov.sg", "gov:kr:moh.gov.sg", "moh.gov.sg", "KR", noteInvalidID)
	f("https://moh.gov.sg/", "x", "gov:sg:www.moh.gov.sg", "gov:kr:moh.gov.sg", "moh.gov.sg", "KR", noteInvalidID, noteDomainDisagrees)

	for _, c := range []struct {
		raw, id string
		want    error
	}{
		{"", mom, ErrNoHost}, // raw_url must be there
		{"http://10.0.0.1/", "gov:sg:10.0.0.1", ErrIP},
		{"http://a.test/", "other:sg:a.test", ErrUnlisted},
		{"http://localhost/", "", ErrSingleLabel},
	} {
		_, _, err := FromRecord(c.raw, "", c.id, "sg")
		assert.ErrorIs(t, err, c.want, "FromRecord(%q, %q)", c.raw, c.id)
	}
	_, _, err := FromRecord("https://a.com", "", "", "Singapore")
	assert.ErrorIs(t, err, errCountry, "bad country")
	d, _, err := FromRecord("https://mom.gov.sg", "", mom, "Singapore")
	assert.True(t, err == nil && d.ID == mom, "a valid id needs no country: %v, %v", d, err)
}

func TestSplitID(t *testing.T) {
	for _, id := range []string{"gov:sg:mom.gov.sg", "edu:kr:snu.ac.kr", "org:us:wikipedia.org", "com:us:a.blogspot.com",
		"other:de:xn--bcher-kva.de", "gov:gb:www.gov.uk", "gov:sg:gov.sg"} {
		authority, cc, host, _, ok := splitID(id)
		assert.True(t, ok && authority+":"+cc+":"+host == id, "splitID(%q) = %q, %q, %q, %v", id, authority, cc, host, ok)
	}
	for _, id := range []string{"", ":", "::", "gov", "gov:sg", "gov:sg:", "gov:sg:sg", "mil:sg:a.com", "Gov:sg:a.com", "gov:SG:a.com",
		"gov:sgp:a.com", "gov:s:a.com", "gov:sg:A.com", "gov:sg:a.com.", "gov:sg:.a.com", "gov:sg:a..com", "gov:sg:b.a.com",
		"gov:sg:www.a.com", "gov:sg:1.2.3.4", "gov:sg:[::1]", "gov:sg:a.test", "gov:sg:a.com:80", "gov:sg:a.com/", " gov:sg:a.com",
		"gov:sg:a.com ", "gov:sg:bücher.de", "gov:sg:xn--a.com", "gov:sg:a_b.com", "gov:sg:-a.com", "gov:sg:a-.com"} {
		_, _, _, _, ok := splitID(id)
		assert.False(t, ok, "%q is valid", id)
	}
}

func TestAuthority(t *testing.T) {
	f := func(want string, domains ...string) {
		t.Helper()
		for _, d := range domains {
			assert.Equal(t, want, authority(d), "Authority(%q)", d)
		}
	}
	f("gov", "nasa.gov", "mom.gov.sg", "moef.go.kr", "sat.gob.mx", "impots.gouv.fr", "health.govt.nz", "army.mil", "mnd.mil.kr",
		"bmf.gv.at", "dfo.gc.ca", "meti.go.jp", "gub.uy", "health.vic.gov.au", "rio.ac.gov.br", "www.gov.uk", "gov.sg",
		"xn--85x722f.xn--mxtq1m.hk")
	f("edu", "mit.edu", "snu.ac.kr", "ox.ac.uk", "nus.edu.sg", "x.k12.ma.us", "x.k12.co.us", "x.sch.uk", "x.nsw.edu.au")
	f("org", "wikipedia.org", "kbs.or.kr", "x.org.uk", "x.eu.org")
	f("com", "example.com", "naver.co.kr", "bbc.co.uk", "a.com.sg", "a.blogspot.com", "x.com.co")
	f("other", "example.net", "example.kr", "x.ac", "x.co", "x.co.it", "x.or.it", "x.go.it", "x.co.us", "a.github.io", "who.int", "x.re.kr")
}

// The table has only names of the public suffix list.
func TestAuthorityTableIsOnTheList(t *testing.T) {
	for suffix := range bySuffix {
		got, icann := publicsuffix.PublicSuffix("x." + suffix)
		assert.True(t, got == suffix && icann, "%q is not a suffix of the list's ICANN section (that has %q)", suffix, got)
	}
}

func TestJSON(t *testing.T) {
	d, err := FromURL("https://www.mom.gov.sg/newsroom", "sg")
	require.NoError(t, err)
	got, err := json.Marshal(d)
	require.NoError(t, err)
	// printf gov:sg:mom.gov.sg | sha256sum
	want := `{"input_url":"https://www.mom.gov.sg/newsroom","hostname":"mom.gov.sg","registrable_domain":"mom.gov.sg",` +
		`"authority":"gov","country":"SG","domain_id":"gov:sg:mom.gov.sg","domain_hash":"0b3f7d4bbbbe9f4660351fc2b9b8b868da060c3f2cb26461fde5ea1f52e9e8ef"}`
	assert.Equal(t, want, string(got), "got  %s\nwant", got)
	var back Domain
	err = json.Unmarshal(got, &back)
	if back.Host = d.Host; err != nil || back != d {
		t.Errorf("read back %+v, %v", back, err)
	}
}

func readCases(t *testing.T) [][]string {
	t.Helper()
	var rows [][]string
	for line := range strings.Lines(string(cases.File(t, "psl/psl_cases.tsv"))) {
		if row := strings.Split(strings.TrimRight(line, "\n"), "\t"); line[0] != '#' && len(row) >= 3 {
			rows = append(rows, row)
		}
	}
	return rows
}

func TestPublicSuffixListCases(t *testing.T) {
	// The rows with another result by the rules of this package, and why.
	differs := map[string]string{
		"example.example all":     "an unlisted top-level name is refused here and allowed by the list's tests",
		"b.example.example all":   "the same",
		"a.b.example.example all": "the same",
	}
	seen := 0
	for _, row := range readCases(t) {
		host, want, section := row[0], row[1], row[2]
		seen++
		if ascii, err := lookup.ToASCII(want); err == nil {
			want = ascii
		}
		got, err := Registrable(host)
		if err != nil {
			got = "null"
		}
		if reason, named := differs[host+" "+section]; named {
			assert.NotEqual(t, want, got, "%s: agrees now, remove it from the exceptions (%s)", host, reason)
			continue
		}
		// A public suffix of two or more labels is a registrable domain here; the list's tests say null.
		if want == "null" && err == nil {
			if suffix, _ := publicsuffix.PublicSuffix(got); suffix == got && strings.Contains(got, ".") {
				continue
			}
		}
		// An icann row ignores the private section, and this package uses both: below a private suffix its result is longer.
		if _, icann := publicsuffix.PublicSuffix(got); section == "icann" && !icann && err == nil {
			assert.True(t, got == want || strings.HasSuffix(got, "."+want), "%s: got %s, which is not in %s", host, got, want)
			continue
		}
		assert.Equal(t, want, got, "%s (%s)", host, section)
	}
	assert.GreaterOrEqual(t, seen, 460, "only")
}

func FuzzFromRecord(f *testing.F) {
	f.Add("https://www.mom.gov.sg/newsroom", "mom.gov.sg", "gov:sg:mom.gov.sg", "sg")
	f.Add("example.com:80/path", "", "", "KR")
	f.Add("http:\\\\u@食狮.公司.cn.:8080?x", "x", "gov:sg:xn--85x722f.xn--55qx5d.cn", "cn")
	f.Add("//[::1]", "", "other:sg:1.2.3.4", "us")
	f.Add("https://www.gov.uk%2e", "", "", "gb")
	f.Fuzz(func(t *testing.T, raw, normalized, id, country string) {
		d, _, err := FromRecord(raw, normalized, id, country)
		if err != nil {
			return
		}
		if _, _, _, _, ok := splitID(id); ok && d.ID != id {
			t.Fatalf("valid id %q became %q", id, d.ID)
		}
		authority, cc, host, _, ok := splitID(d.ID)
		require.True(t, ok && authority == d.Authority && strings.EqualFold(cc, d.Country) && host == d.Registrable, "%+v does not split back", d)
		if again, err := Registrable(d.Registrable); err != nil || again != d.Registrable {
			t.Fatalf("registrable %q becomes %q, %v", d.Registrable, again, err)
		}
		if folded, err := foldHost(d.Hostname); err != nil || folded != d.Hostname {
			t.Fatalf("hostname %q folds to %q, %v", d.Hostname, folded, err)
		}
		if d.ID != id && ofOlderID(id, country) != d.ID {
			again, err := FromURL("https://"+d.Hostname+"/", cc)
			require.True(t, err == nil && again.ID == d.ID, "%q gave %q, its own hostname gives %q, %v", raw, d.ID, again.ID, err)
		}
	})
}

func BenchmarkFromRecord(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_, _, err := FromRecord("https://www.mom.gov.sg/newsroom", "mom.gov.sg", "gov:sg:mom.gov.sg", "sg")
		require.NoError(b, err)
	}
}

func BenchmarkFromURL(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_, err := FromURL("https://www.mom.gov.sg/newsroom", "sg")
		require.NoError(b, err)
	}
}
