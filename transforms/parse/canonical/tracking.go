package canonical

import (
	"slices"
	"strings"
	"unicode"
)

// trackers are the query parameters that follow visitors, by those who document them as theirs or add them to links.
// A name with a * is the beginning of names.
var trackers = []struct{ by, names string }{
	{"Google Analytics and Ads: campaign URLs, click ids, linker", "utm_* gclid gclsrc gbraid wbraid dclid gad_source gad_campaignid _ga _gl"},
	{"Matomo and Piwik: campaign parameters", "mtm_* matomo_* piwik_* pk_*"},
	{"Meta: click id, referrals of the Graph API, shares", "fbclid fb_action_ids fb_action_types fb_ref fb_source igsh igshid"},
	{"Microsoft Advertising: click id; MSN, and the BBC's links there", "msclkid ocid"},
	{"Yandex: click ids, Openstat", "yclid ysclid _openstat"},
	{"X, TikTok, LinkedIn, Pinterest, Snap: click ids", "twclid ttclid li_fat_id trk trkcampaign epik scid"},
	{"HubSpot: links in mail and advertisements", "hsa_* _hs* hsctatracking"},
	{"Mailchimp, Marketo, Omeda, Vero: links in mail", "mc_* mkt_tok oly_* vero_*"},
	{"AT Internet, now Piano: marketing campaigns", "xtor xtref at_custom* at_medium* at_campaign*"},
	{"comScore Digital Analytix: campaign links (Daily Mail, BBC)", "ns_campaign ns_mchannel ns_source ns_linkname ns_fee"},
	{"Adobe Analytics: campaign codes by custom (Guardian, CBC, Bloomberg, AOL)", "cmp cmpid icid icmp s_cid ncid"},
	{"Webtrekk, Webtrends: campaign codes", "wt_mc wt_zmc wt.mc_id"},
	{"Naver: search advertisements and shopping", "n_media n_query n_rank n_ad_group n_ad n_keyword_id n_keyword n_campaign_type napm"},
	{"Deutsche Welle, Daily Mail, New York Times: links of their feeds and shares", "maca ito smid smtyp"},
	{"referrers by custom: ref_src of X, ref of shops and feeds", "ref ref_src ref_url referrer"},
}

// ambiguous are names that choose a page at some sites, and tell at others the channel of a link: then their value is one of
// channels. WordPress's own feeds are feed=rss2, atom and rdf.
var (
	ambiguous = []string{"src", "origin", "source", "from", "via", "feed", "medium", "traffic_source"}
	channels  = []string{"rss", "mrss", "feed", "feeds", "email", "mail", "newsletter", "nl", "push", "share", "social", "sns", "twitter", "facebook", "fb", "instagram",
		"linkedin", "whatsapp", "telegram", "kakao", "googlenews", "flipboard", "syndication"}
)

// Tracking reports whether a query parameter serves to follow visitors and not
// to choose a page: utm_source, ref, gclid; or src, where its value is a channel such as rss.
func Tracking(name, value string) bool {
	name = strings.ToLower(name)
	if slices.Contains(ambiguous, name) {
		value = strings.ToLower(value)
		if i := strings.IndexFunc(value, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }); i >= 0 {
			value = value[:i]
		}
		return slices.Contains(channels, value)
	}
	return tracking[name] || slices.ContainsFunc(trackingPrefixes, func(begin string) bool { return strings.HasPrefix(name, begin) })
}

var tracking, trackingPrefixes = func() (names map[string]bool, prefixes []string) {
	names = map[string]bool{}
	for _, t := range trackers {
		for name := range strings.FieldsSeq(t.names) {
			if begin, ok := strings.CutSuffix(name, "*"); ok {
				prefixes = append(prefixes, begin)
			} else {
				names[name] = true
			}
		}
	}
	return names, prefixes
}()
