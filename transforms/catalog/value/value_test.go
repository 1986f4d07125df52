package value

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func locale(t *testing.T, s string) Locale {
	t.Helper()
	l, err := ParseLocale(s)
	require.NoError(t, err)
	return l
}

func TestNumber(t *testing.T) {
	for _, tt := range []struct {
		locale, in string
		want       float64
	}{
		{"", "€ 3.299,00", 3299}, {"", "1 299,00 €", 1299}, {"", "2,5 kg", 2.5}, {"", "1'299.00", 1299}, {"", "1’299.–", 1299},
		{"", "3.25", 3.25}, {"", "1,234.50", 1234.5}, {"", "1.234.567", 1234567}, {"", "0.125", 0.125}, {"", "0,125", 0.125}, {"", "1234.567", 1234.567},
		{"", "1\u202f299,00\u00a0€", 1299}, {"", "12,34,567.89", 1234567.89}, {"", "１,２３４.５", 1234.5}, {"", "٣٬٢٩٩٫٥٠", 3299.5},
		{"ja", "１２，８００", 12800}, {"ja", "１２\u3000８００", 12800}, {"", "－５．５", -5.5}, {"", "௧௨.௫", 12.5}, {"my", "၁၂၃", 123}, {"km", "៤៥,៥", 45.5}, {"", "𝟏𝟐", 12}, {"", "⑫", math.NaN()}, {"", "１½", math.NaN()}, {"", "5²", math.NaN()},
		{"", "-5.5 °C", -5.5}, {"", "−5", -5}, {"", "-$5.25", -5.25}, {"", "- 5", -5}, {"", ".5", 0.5}, {"", "Fr.12.50", 12.5}, {"", "Rs.500", 500}, {"", "EUR12.90", 12.9},
		{"", "12,90€", 12.9}, {"", "(7 reviews)", 7}, {"", "2,5 m²", 2.5}, {"", "15 %", 15}, {"", "1e5", 1e5}, {"", "49,-", 49}, {"", "12,– kr", 12},
		{"", "1.299", math.NaN()}, {"", "1,299", math.NaN()}, {"", "1 299 €", math.NaN()}, {"", "2 x 3", math.NaN()}, {"", "3–5", math.NaN()}, {"", "free", math.NaN()},
		{"", "MAT00005", math.NaN()}, {"", "SKU-5", math.NaN()}, {"", "1½", math.NaN()}, {"", "3만원", math.NaN()}, {"", "1,5 Mio. €", math.NaN()}, {"", "4k", math.NaN()}, {"", "5-", math.NaN()},
		{"", "9007199254740992", 1 << 53}, {"", "9007199254740993", math.NaN()}, {"en", "-12,345,678,901,234,567,890", math.NaN()}, {"", "1.23.4", math.NaN()}, {"", "1,23.4,5", math.NaN()}, {"", "NaN", math.NaN()}, {"", "", math.NaN()}, {"", "12:50", math.NaN()}, {"", "1,234.567.8", math.NaN()},
		{"de-DE", "1.299", 1299}, {"de", "3.299,00 €", 3299}, {"de-DE", "2,5", 2.5}, {"de-DE", "1 299", 1299}, {"de-DE", "1,299.00", math.NaN()}, {"de-DE", "3299.00", math.NaN()},
		{"en-US", "1,299", 1299}, {"en-US", "1.299", 1.299}, {"en-US", "3.299,00", math.NaN()}, {"en", "2,5", math.NaN()}, {"en-IN", "₹12,34,567", 1234567},
		{"de-CH", "CHF 1'299.50", 1299.5}, {"de-CH", "1’299.00", 1299}, {"fr-FR", "1\u202f299,50", 1299.5}, {"fr", "1 299", 1299}, {"ko-KR", "12,900원", 12900}, {"es-MX", "$1,299.00", 1299},
		{"pt-BR", "R$ 1.299,90", 1299.9}, {"sv-SE", "12 990:-", 12990}, {"sv-SE", "1 299 000", 1299000}, {"de-DE", "12 99 000", math.NaN()},
	} {
		got, err := Number(tt.in, locale(t, tt.locale))
		if math.IsNaN(tt.want) {
			assert.Error(t, err, "%s %q gives %v", tt.locale, tt.in, got)
			continue
		}
		if assert.NoError(t, err, "%s %q", tt.locale, tt.in) {
			assert.Equal(t, tt.want, got, "%s %q", tt.locale, tt.in)
		}
	}
	_, err := Number("1.299", Locale{})
	assert.EqualError(t, err, `"1.299": it may be 1.299 or 1299: set the site's or the field's locale`)
	_, err = ParseLocale("german!")
	assert.ErrorContains(t, err, "such as de, de-CH or en-US")
}

func TestInteger(t *testing.T) {
	for _, tt := range []struct {
		locale, in string
		want       any
	}{
		{"", "1,234", int64(1234)}, {"", "1.234", int64(1234)}, {"", "1'234'567", int64(1234567)}, {"", "0xFFF1", int64(65521)}, {"", "-5", int64(-5)}, {"", "12 reviews", int64(12)},
		{"", "1.5", nil}, {"", "", nil}, {"", "1 234", nil}, {"fr", "1 234", int64(1234)}, {"en", "1.234", nil}, {"en", "5.00", int64(5)}, {"de", "1.234", int64(1234)}, {"", "0xzz", nil},
		{"", "99999999999999999999", nil},
	} {
		got, err := Integer(tt.in, locale(t, tt.locale))
		if tt.want == nil {
			assert.Error(t, err, "%s %q gives %v", tt.locale, tt.in, got)
		} else if assert.NoError(t, err, "%s %q", tt.locale, tt.in) {
			assert.Equal(t, tt.want, got, "%s %q", tt.locale, tt.in)
		}
	}
}

func TestMoney(t *testing.T) {
	for _, tt := range []struct {
		locale, other, in string
		amount            float64
		currency          string // "": an error
	}{
		{"", "", "€ 3.299,00", 3299, "EUR"}, {"", "", "1 299,00 EUR", 1299, "EUR"}, {"", "", "CHF 1'299.00", 1299, "CHF"}, {"ko", "", "12,900원", 12900, "KRW"},
		{"", "", "US$5", 5, "USD"}, {"", "", "5 $", 0, ""}, {"", "CAD", "$5.25", 5.25, "CAD"}, {"", "EUR", "$5.25", 0, ""}, {"", "EUR", "US$ 5.25", 5.25, "USD"}, {"", "", "$5 CAD", 5, "CAD"},
		{"", "", "99 kr", 0, ""}, {"", "SEK", "99 kr", 99, "SEK"}, {"", "", "99", 0, ""}, {"", "EUR", "ab 99,90", 99.9, "EUR"}, {"", "", "5 EUR / US$ 6", 0, ""}, {"", "", "$5 EUR", 0, ""},
		{"de", "", "49,90 € *", 49.9, "EUR"}, {"", "", "R$ 1.299,90", 1299.9, "BRL"}, {"ja", "JPY", "¥1,299", 1299, "JPY"}, {"", "", "-€5.20", -5.2, "EUR"},
		{"ja-JP", "", "￥１２，８００", 12800, "JPY"}, {"ja", "", "￥１２，８００", 0, ""}, {"zh-CN", "", "¥12．50", 12.5, "CNY"}, {"en-CA", "", "＄5", 5, "CAD"}, {"en-US", "EUR", "$5", 0, ""},
		{"en-US", "", "99", 0, ""}, {"de-CH", "", "$5", 0, ""},
	} {
		got, err := Money(tt.in, locale(t, tt.locale), tt.other)
		if tt.currency == "" {
			assert.Error(t, err, "%q gives %v", tt.in, got)
		} else if assert.NoError(t, err, "%q", tt.in) {
			assert.Equal(t, Amount{tt.amount, tt.currency}, got, "%q", tt.in)
		}
	}
	assert.NoError(t, ParseCurrency("EUR"))
	assert.Error(t, ParseCurrency("eur"))
	assert.Error(t, ParseCurrency("EURO"))
}

// A time with an offset is of another day in another zone, in whichever form it is written.
func TestDateOfATime(t *testing.T) {
	seoul, err := time.LoadLocation("Asia/Seoul")
	require.NoError(t, err)
	for _, text := range []string{"2026-11-03T20:05:00-05:00", "2026-11-03 20:05 -0500", "2026-11-03 20:05-05:00", "Tue, 03 Nov 2026 20:05:00 EST", "Tue, 03 Nov 2026 20:05:00 GMT"} {
		got, err := Date(text, Locale{}, seoul)
		assert.True(t, got == "2026-11-04" && err == nil, "%q: %s, %v; want 2026-11-04", text, got, err)
	}
}

func TestDate(t *testing.T) {
	seoul, err := time.LoadLocation("Asia/Seoul")
	require.NoError(t, err)
	for _, tt := range []struct {
		locale, in, want string
		zone             *time.Location
	}{
		{"", "2026-11-03", "2026-11-03", nil}, {"", "2026.11.03", "2026-11-03", nil}, {"", "2026/1/3", "2026-01-03", nil}, {"", "2026. 1. 3.", "2026-01-03", nil},
		{"", "2026년 11월 22일 오후 1시 5분", "2026-11-22", nil}, {"", "2026年11月22日", "2026-11-22", nil}, {"ko", "26.11.22", "2026-11-22", nil}, {"ko", "26년 1월 2일", "2026-01-02", nil}, {"", "26.11.22", "", nil},
		{"", "2026-11-22 오전 9:15", "2026-11-22", nil}, {"", "Nov 3, 2026", "2026-11-03", nil}, {"", "November 3rd, 2026", "2026-11-03", nil}, {"", "3 Nov 2026", "2026-11-03", nil}, {"", "3-Nov-2026", "2026-11-03", nil},
		{"de", "3. November 2026", "2026-11-03", nil}, {"de", "3. März 2026", "2026-03-03", nil}, {"fr", "le 3 février 2026", "2026-02-03", nil}, {"es", "3 de marzo de 2026", "2026-03-03", nil}, {"ru", "3 марта 2026 г.", "2026-03-03", nil},
		{"", "3. März 2026", "", nil}, {"fr", "1er août 2026", "2026-08-01", nil},
		{"en-US", "03/04/2026", "2026-03-04", nil}, {"en-GB", "03/04/2026", "2026-04-03", nil}, {"de", "03.04.2026", "2026-04-03", nil}, {"", "03.04.2026", "2026-04-03", nil}, {"", "03/04/2026", "", nil},
		{"", "11/21/2026", "2026-11-21", nil}, {"", "21/11/2026", "2026-11-21", nil}, {"", "05/05/2026", "2026-05-05", nil}, {"en-US", "21/11/2026", "", nil}, {"en-GB", "11/21/2026", "", nil}, {"de", "3.4.26", "2026-04-03", nil},
		{"", "2026-02-30", "", nil}, {"", "from 2026-01-01 to 2026-02-01", "", nil}, {"", "soon", "", nil}, {"", "", "", nil}, {"", "on 2026-01-02 (2026-01-02)", "2026-01-02", nil},
		{"", "2026-11-02T23:30:00Z", "2026-11-02", nil}, {"", "2026-11-02T23:30:00Z", "2026-11-03", seoul}, {"", "2026-11-03T01:00:00+09:00", "2026-11-03", nil}, {"", "2026-11-03T01:00:00+09:00", "2026-11-02", time.UTC},
		{"", "2026-11-03T10:00:00", "2026-11-03", seoul},
		{"th-TH", "5 มีนาคม 2569", "2026-03-05", nil}, {"th", "๕ มี.ค. ๒๕๖๙", "2026-03-05", nil}, {"th", "วันที่ 12 กุมภาพันธ์ พ.ศ. 2569", "2026-02-12", nil}, {"th", "5 มี.ค. 2026", "2026-03-05", nil},
		{"th", "5/3/2569", "2026-03-05", nil}, {"th", "5/3/69", "", nil}, {"th", "29 ก.พ. 2567", "2024-02-29", nil}, {"", "5 มีนาคม 2569", "", nil}, {"th", "2569-03-05", "2026-03-05", nil},
		{"th", "5 มี.ค. พ.ศ. 2569", "2026-03-05", nil}, {"th", "1 พฤษภาคม ค.ศ. 2026", "2026-05-01", nil}, {"th", "วันพฤหัสบดีที่ 31 ธันวาคม พุทธศักราช 2569 เวลา 09.30 น.", "2026-12-31", nil},
		{"th", "9 พ.ย.2569", "2026-11-09", nil}, {"th", "1 มิ.ย. 69", "", nil}, {"th", "2569-03-05T10:00:00+07:00", "2026-03-05", nil}, {"th", "30 ก.พ. 2569", "", nil},
		{"ja", "令和元年5月1日", "2019-05-01", nil}, {"ja", "㋿８年１１月２７日", "2026-11-27", nil}, {"ja", "令和八年十一月二十七日", "2026-11-27", nil}, {"ja", "R8.3.5", "2026-03-05", nil}, {"ja", "H31/4/30", "2019-04-30", nil},
		{"ja", "㍻31年4月30日", "2019-04-30", nil}, {"ja", "昭和64年1月7日", "1989-01-07", nil}, {"ja", "大正15年12月24日", "1926-12-24", nil}, {"ja", "発売日：令和10-02-29", "2028-02-29", nil}, {"ja", "令和7年2月29日", "", nil},
		{"", "R8.3.5", "", nil}, {"ja", "CR8.3.5", "", nil}, {"zh", "二〇二六年三月十日", "2026-03-10", nil}, {"ja", "２０２６年３月５日（木）", "2026-03-05", nil}, {"ko", "２０２６．３．５", "2026-03-05", nil}, {"ja", "2026年㋂5日", "2026-03-05", nil},
		{"fr", "3 fe\u0301vrier 2026", "2026-02-03", nil},
		{"", "令和8年3月5日", "2026-03-05", nil}, {"ja", "令和08年3月5日", "2026-03-05", nil}, {"ja", "平成元年1月8日", "1989-01-08", nil}, {"zh-TW", "民國115年3月5日", "2026-03-05", nil},
	} {
		got, err := Date(tt.in, locale(t, tt.locale), tt.zone)
		if tt.want == "" {
			assert.Error(t, err, "%s %q gives %v", tt.locale, tt.in, got)
		} else if assert.NoError(t, err, "%s %q", tt.locale, tt.in) {
			assert.Equal(t, tt.want, got, "%s %q", tt.locale, tt.in)
		}
	}
}

func TestBoolean(t *testing.T) {
	for of, want := range map[string]string{
		"Yes": "true", "n": "false", "0": "false", "１": "true", "In stock": "true", "IN STOCK!": "true", "in-stock": "true", "in_stock": "true", "InStock": "true", "https://schema.org/OutOfStock": "false",
		"http://schema.org/InStoreOnly": "true", "SoldOut": "false", "✓ Auf Lager": "true", "nicht vorrätig": "false", "Rupture de stock": "false", "Agotado": "false", "在庫あり": "true", "품절": "false",
		"12 in stock": "true", "0 in stock": "false", "Only 2 left in stock": "true", "PreOrder": "", "": "", "2": "", "stock": "", "Available on backorder": "",
	} {
		got, err := Boolean(of)
		if want == "" {
			assert.Error(t, err, of)
		} else if assert.NoError(t, err, of) {
			assert.Equal(t, want == "true", got, of)
		}
	}
}

func FuzzValue(f *testing.F) {
	for _, s := range []string{"€ 3.299,00", "1 299,00 €", "12,– kr", "2026년 11월 22일", "3. März 2026", ".5", "-", "٣٬٢٩٩٫٥٠"} {
		f.Add(s, "de")
	}
	f.Fuzz(func(t *testing.T, s, tag string) {
		l, err := ParseLocale(tag)
		if err != nil {
			return
		}
		n, err := Number(s, l)
		assert.True(t, err != nil || !math.IsNaN(n) && !math.IsInf(n, 0), "%q: %v", s, n)
		a, err := Money(s, l, "")
		assert.True(t, err != nil || ParseCurrency(a.Currency) == nil, "%q: %v", s, a)
		if d, err := Date(s, l, nil); err == nil {
			_, err := time.Parse(time.DateOnly, d)
			assert.NoError(t, err, "%q: %v", s, d)
		}
		_, _ = Integer(s, l)
	})
}
