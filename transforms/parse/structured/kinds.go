package structured

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// Article is a news article or another text of a page, as the page describes it.
type Article struct {
	Item                           *Item // for what the fields do not have
	Headline, Description, Section string
	Body                           string // articleBody as written: may have tags, entities and line ends
	Published, Modified            string // as written
	Language, URL                  string
	Authors, Keywords, Images      []string
	Paid                           bool     // isAccessibleForFree says no
	PaidParts                      []string // CSS selectors of hasPart for the elements that are not free
}

// articleTypes are schema.org's Article and those below it that news use, the surest first.
var articleTypes = []string{"NewsArticle", "Article", "ReportageNewsArticle", "AnalysisNewsArticle", "OpinionNewsArticle", "BackgroundNewsArticle",
	"ReviewNewsArticle", "AskPublicNewsArticle", "BlogPosting", "LiveBlogPosting", "SocialMediaPosting", "Report", "ScholarlyArticle", "TechArticle", "Review", "Recipe", "HowTo", "MedicalWebPage"}

// Article is the page's article by JSON-LD, else by the one article in its elements. A WebPage
// adds what the article does not say. ok is false where the page describes neither.
func (d *Data) Article() (a Article, ok bool) {
	var it, page *Item
	rank, cards := len(articleTypes), 0
	for c := range d.main() {
		if c.Is("WebPage") && page == nil {
			page = c
		}
		i := slices.IndexFunc(articleTypes, func(t string) bool { return c.Is(t) })
		if i < 0 || it != nil && c.Syntax != it.Syntax {
			continue
		}
		if c.Syntax != JSONLD {
			cards++
		}
		if i < rank || i == rank && it.plain("articleBody") == "" && c.plain("articleBody") != "" {
			it, rank = c, i
		}
	}
	if cards > 1 { // of a list
		it = nil
	}
	if it == nil && page == nil {
		return Article{}, false
	}
	said := false
	for _, from := range []*Item{it, page} {
		if from != nil {
			a.add(from, &said)
		}
	}
	if it == nil {
		a.Item = page
		return a, true
	}
	a.Item = it
	a.Published = firstOf(a.Published, it.plain("dateCreated"))
	a.Headline, a.Description, a.Section = cmp.Or(it.Text("headline"), it.Text("name")), it.Text("description"), it.Text("articleSection")
	a.Body = strings.TrimSpace(cmp.Or(it.plain("articleBody"), it.plain("text")))
	for _, update := range it.Items("liveBlogUpdate") {
		if a.Body == "" || it.plain("articleBody") == "" {
			a.Body = strings.TrimSpace(a.Body + "\n" + update.plain("headline") + "\n" + update.plain("articleBody"))
		}
	}
	a.Authors = it.people("author")
	for _, s := range it.texts("keywords") {
		for k := range strings.SplitSeq(s, ",") {
			if k = strings.TrimSpace(k); k != "" && !slices.Contains(a.Keywords, k) {
				a.Keywords = append(a.Keywords, k)
			}
		}
	}
	return a, true
}

// add adds what an article or its page says of it. said: whether it is free is known.
func (a *Article) add(from *Item, said *bool) {
	a.Published = firstOf(a.Published, from.plain("datePublished"))
	a.Modified = firstOf(a.Modified, from.plain("dateModified"))
	a.Language = firstOf(a.Language, from.Text("inLanguage"))
	a.URL = firstOf(a.URL, from.URL("url"))
	if len(a.Images) == 0 {
		a.Images = from.urls("image", "primaryImageOfPage")
	}
	if free, known := truth(from.plain("isAccessibleForFree")); known && !*said {
		a.Paid, *said = !free, true
	}
	for _, part := range from.Items("hasPart") {
		if free, known := truth(part.plain("isAccessibleForFree")); known && !free {
			a.PaidParts = append(a.PaidParts, part.texts("cssSelector")...)
		}
	}
}

// main are the items that may be what the page is about: not those within lists, comments and the like.
func (d *Data) main() iter.Seq[*Item] {
	return d.walk(6, func(*Item) []string { return []string{"mainEntity", "mainEntityOfPage", "hasPart"} })
}

// people are the names of persons and organisations, without those that are addresses.
func (it *Item) people(name string) []string {
	var out []string
	for _, s := range it.texts(name) {
		if !strings.Contains(s, "://") && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// truth is a schema.org Boolean, which pages write as an address too.
func truth(s string) (is, said bool) {
	s = strings.ToLower(strings.TrimSpace(s))
	switch s[strings.LastIndexByte(s, '/')+1:] {
	case "true", "yes", "1":
		return true, true
	case "false", "no", "0":
		return false, true
	}
	return false, false
}

// Product is what a page sells or lists, as the page describes it.
type Product struct {
	Item                         *Item // for what the fields do not have; nil where only Open Graph speaks
	Name, Description            string
	SKU, GTIN, MPN               string
	Brand, Category, URL         string
	Images                       []string
	Rating, RatingCount, Reviews string
	Offers                       []Offer   // those for everybody and one piece first
	Variants                     []Product // of a ProductGroup; without variants of their own
}

// Offer is a price of a product. Numbers are as written.
type Offer struct {
	Item                     *Item
	Price, Low, High         string // Low and High are of an AggregateOffer, which may have no price of its own
	Currency                 string // ISO 4217 as a rule
	Availability, Condition  string // schema.org's names: InStock, NewCondition
	URL, Seller, SKU, Expiry string
}

// productTypes are schema.org's Product and those below it.
var productTypes = []string{"Product", "ProductGroup", "IndividualProduct", "ProductModel", "SomeProducts", "Vehicle", "Car"}

// Product is the page's product: of those that the page describes, the one with its address,
// else the one with the name that the page has as its heading, else the one with a price, else the
// first; without any, what Open Graph says. ok is false where there is none.
func (d *Data) Product() (p Product, ok bool) {
	var best *Item
	most := -1
	address := strings.TrimSuffix(d.First("og:url"), "/")
	titles := slices.Concat(d.headings, d.Meta["og:title"])
	for it := range d.main() {
		if !it.Is(productTypes...) {
			continue
		}
		score := 0
		if address != "" && strings.TrimSuffix(it.URL("url"), "/") == address {
			score += 4
		}
		if name := it.Text("name"); name != "" && slices.ContainsFunc(titles, func(s string) bool { return strings.EqualFold(s, name) }) {
			score += 2
		}
		if len(it.Values("offers"))+len(it.Values("hasVariant")) > 0 {
			score++
		}
		if score > most {
			best, most = it, score
		}
	}
	if best != nil {
		p = best.Product()
		for _, variant := range d.variants(best) {
			p.Variants = append(p.Variants, variant.Product())
		}
	}
	for _, of := range []string{"product:sale_price:", "product:price:", "og:price:"} { // the first is lower than the others
		if price := d.First(of + "amount"); len(p.Offers) == 0 && strings.Trim(price, "0.,") != "" {
			p.Offers = []Offer{{Price: price, Currency: d.First(of+"currency", "product:price:currency", "og:price:currency"), Availability: d.First("product:availability", "og:availability")}}
		}
	}
	if best == nil && len(p.Offers) > 0 || strings.Contains(d.First("og:type"), "product") {
		p.Name = cmp.Or(p.Name, d.First("og:title"))
		p.Description = cmp.Or(p.Description, d.First("og:description"))
		p.Brand = cmp.Or(p.Brand, d.First("product:brand", "og:brand"))
		p.SKU = cmp.Or(p.SKU, d.First("product:retailer_item_id"))
		if len(p.Images) == 0 {
			p.Images = d.Meta["og:image"]
		}
		p.URL = cmp.Or(p.URL, d.First("og:url"))
	}
	return p, best != nil || p.Name != ""
}

// variants are those that a group names, else those that name the group.
func (d *Data) variants(group *Item) []*Item {
	all := group.Items("hasVariant")
	if len(all) > 0 || !group.Is("ProductGroup") {
		return all
	}
	id := group.Text("productGroupID")
	for it := range d.main() {
		of := slices.Contains(it.Items("isVariantOf"), group) || id != "" && it.Text("inProductGroupWithID") == id
		if of && it != group {
			all = append(all, it)
		}
	}
	return all
}

// Product reads the item as a product.
func (it *Item) Product() Product {
	p := Product{Item: it, Name: it.Text("name"), Description: it.Text("description"),
		SKU: cmp.Or(it.Text("sku"), it.Text("productID"), it.Text("productGroupID")), MPN: it.Text("mpn"), Brand: cmp.Or(it.Text("brand"), it.Text("manufacturer")),
		GTIN:     cmp.Or(it.Text("gtin13"), it.Text("gtin"), it.Text("gtin14"), it.Text("gtin12"), it.Text("gtin8"), it.Text("isbn")),
		Category: it.Text("category"), URL: it.URL("url"), Images: it.urls("image")}
	for _, r := range it.Items("aggregateRating") {
		p.Rating, p.RatingCount, p.Reviews = r.Text("ratingValue"), r.Text("ratingCount"), r.Text("reviewCount")
	}
	seen := map[*Item]bool{}
	for _, o := range it.Items("offers") {
		p.Offers = append(p.Offers, o.offers(seen)...)
	}
	for _, variant := range it.Items("hasVariant") {
		for _, o := range variant.Items("offers") {
			for _, o := range o.offers(seen) {
				o.SKU = cmp.Or(o.SKU, variant.Text("sku"))
				p.Offers = append(p.Offers, o)
			}
		}
	}
	forSome := func(o Offer) int {
		if o.Item.limited() || local(o.Item.URL("businessFunction")) == leaseOut {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(p.Offers, func(a, b Offer) int { return forSome(a) - forSome(b) })
	return p
}

// offers are an offer, and those within it. Items that name each other may do so in a circle.
func (it *Item) offers(seen map[*Item]bool) []Offer {
	if seen[it] {
		return nil
	}
	seen[it] = true
	o := Offer{Item: it, Price: it.Text("price"), Low: it.Text("lowPrice"), High: it.Text("highPrice"), Currency: it.Text("priceCurrency"),
		Availability: local(it.plain("availability")), Condition: local(it.plain("itemCondition")),
		URL: it.URL("url"), Seller: it.Text("seller"), SKU: it.Text("sku"), Expiry: it.Text("priceValidUntil")}
	if spec := it.paid(); spec != nil && o.Price == "" {
		o.Price, o.Currency = spec.Text("price"), cmp.Or(o.Currency, spec.Text("priceCurrency"))
		o.Low, o.High = cmp.Or(o.Low, spec.Text("minPrice")), cmp.Or(o.High, spec.Text("maxPrice"))
	}
	var out []Offer
	if o.Price != "" || o.Low != "" || o.Availability != "" {
		out = append(out, o)
	}
	for _, within := range it.Items("offers") {
		out = append(out, within.offers(seen)...)
	}
	return out
}

// leaseOut is the function of an offer to rent.
const leaseOut = "http://purl.org/goodrelations/v1#LeaseOut"

// limited reports whether an offer or a price is for members, or for several pieces.
func (it *Item) limited() bool {
	return len(it.Values("validForMemberTier")) > 0 || slices.ContainsFunc(it.Items("eligibleQuantity"), (*Item).several)
}

// paidTypes are the types of a price that a buyer pays, the better ones first.
var paidTypes = []string{"", "SalePrice", "RegularPrice"}

// paid returns the offer's price specification that everybody pays for one piece, nil for none.
func (it *Item) paid() (best *Item) {
	rank := len(paidTypes)
	for _, spec := range it.Items("priceSpecification") {
		i := slices.Index(paidTypes, local(spec.URL("priceType")))
		if i < 0 || i >= rank || spec.Is("DeliveryChargeSpecification", "PaymentChargeSpecification") || spec.limited() || spec.amount() ||
			cmp.Or(spec.Text("price"), spec.Text("minPrice")) == "" || len(spec.Values("priceComponentType")) > 0 ||
			slices.ContainsFunc(spec.Items("referenceQuantity"), (*Item).amount) {
			continue
		}
		best, rank = spec, i
	}
	return best
}

// amount reports whether a price with this unit or reference quantity is for another amount than one piece, such as 100 g. A quantity
// with a valueReference is what the piece contains, and that one the 100 g (Google's merchant listings, unit pricing).
func (it *Item) amount() bool {
	if len(it.Values("valueReference")) > 0 {
		return false
	}
	return it.several() || !slices.Contains([]string{"", "C62", "H87", "EA", "PCE"}, strings.ToUpper(it.Text("unitCode"))) || it.Text("unitText") != ""
}

// several reports whether a quantity begins above one piece.
func (it *Item) several() bool {
	n, err := strconv.ParseFloat(cmp.Or(it.Text("minValue"), it.Text("value"), "1"), 64)
	return err != nil || n > 1
}
