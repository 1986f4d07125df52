package value

import (
	"fmt"
	"regexp"
	"strings"
)

// yes and no are what pages write for a boolean, most of all for whether a product can be bought: words of shops, and the names of
// schema.org's ItemAvailability that say one or the other.
var (
	yes = wordSet(`yes|y|true|1|ja|oui|sí|in stock|available|in store only|online only|limited availability|auf lager|lieferbar|vorrätig|verfügbar|en stock|disponible|en existencia|disponibile|
		op voorraad|i lager|på lager|em estoque|em stock|disponível|dostępny|w magazynie|skladem|в наличии|stokta|在庫あり|有货|有貨|現貨|재고 있음|구매가능`)
	no = wordSet(`no|n|false|0|nein|non|out of stock|sold out|unavailable|not available|discontinued|nicht auf lager|nicht lieferbar|nicht vorrätig|nicht verfügbar|ausverkauft|en rupture de stock|rupture de stock|
		épuisé|indisponible|agotado|sin existencias|no disponible|esaurito|non disponibile|uitverkocht|niet op voorraad|slutsåld|ikke på lager|udsolgt|utsolgt|esgotado|fora de estoque|indisponível|niedostępny|
		vyprodáno|нет в наличии|tükendi|在庫なし|品切れ|売り切れ|缺货|缺貨|售罄|품절`)
	pieces = regexp.MustCompile(`^(?:only )?([0-9]+) (?:left )?in stock`)
	joints = regexp.MustCompile(`(\p{Ll})(\p{Lu})`)
)

func wordSet(list string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.SplitSeq(list, "|") {
		out[strings.TrimSpace(w)] = true
	}
	return out
}

// Boolean reads yes or no, and whether a product is in stock: "In stock", "12 in stock", https://schema.org/OutOfStock.
func Boolean(text string) (bool, error) {
	s := digits(strings.TrimSpace(text))
	if strings.Contains(s, "schema.org/") {
		s = s[strings.LastIndexByte(s, '/')+1:]
	}
	s = strings.ToLower(joints.ReplaceAllString(s, "$1 $2"))
	s = strings.Trim(strings.NewReplacer("-", " ", "_", " ").Replace(s), " .!✓✔✅✗✘❌●•")
	if n := pieces.FindStringSubmatch(s); n != nil {
		return strings.Trim(n[1], "0") != "", nil
	}
	if yes[s] || no[s] {
		return yes[s], nil
	}
	return false, fmt.Errorf("%q is neither yes nor no, nor in stock or out of stock: choose other words by a regexp, or use the type text", text)
}
