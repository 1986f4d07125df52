package domain

import (
	"strings"

	"golang.org/x/net/publicsuffix"
)

// The table of authorities.
//
// Source: the second-level names in the ICANN section of the public suffix
// list (https://publicsuffix.org/list/, which cites each registry's own page),
// with the meaning that the registry gives them. byLabel has the names that mean the
// same under every country. bySuffix has the names with a meaning only there, and,
// as "", names that look like those of byLabel but have another meaning.
var (
	byLabel = map[string]string{
		"gov": "gov", "gob": "gov", "gouv": "gov", "govt": "gov", "gub": "gov", "mil": "gov",
		"edu": "edu", "ac": "edu", "sch": "edu", "k12": "edu",
		"org": "org",
		"com": "com", "co": "com",
	}
	bySuffix = fold(map[string][]string{
		"": {
			"ac", "co", // Ascension and Colombia themselves
			"co.us", "co.it", // Colorado, Como
		},
		"gov": {
			"go.kr", "go.jp", "lg.jp", "go.th", "mi.th", "go.id", "desa.id", "go.ke", "go.tz", "go.ug", "go.cr",
			"gv.at", "gv.ao", "gc.ca", "dni.us", "nhs.uk", "police.uk", "parliament.nz",
			"jus.br", "leg.br", "mp.br", "def.br", "gop.pk", "gok.pk", "gos.pk", "gog.pk",
			"政府.hk", "รัฐบาล.ไทย", "ทหาร.ไทย",
		},
		"edu": {
			"es.kr", "hs.kr", "ms.kr", "sc.kr", "kg.kr", "ed.jp", "ed.cr", "ed.ao", "ed.ci",
			"school.nz", "school.za", "univ.sn", "ens.tn", "教育.hk", "ศึกษา.ไทย",
		},
		"org": {
			"or.kr", "or.jp", "or.th", "or.id", "or.at", "or.cr", "or.ke", "or.tz", "or.ug", "or.bi", "or.ci", "or.mu",
			"asso.fr", "組織.hk", "องค์กร.ไทย",
		},
		"com": {"ltd.uk", "plc.uk", "公司.hk", "公司.cn", "ธุรกิจ.ไทย"},
	})
)

// authority returns the kind of authority that owns a registrable domain: gov, edu,
// org, com or other. It reads the public suffix from the right, so that ac.gov.br
// (Acre) belongs to a government and k12.ma.us to a school.
func authority(registrable string) string {
	suffix, _ := publicsuffix.PublicSuffix(registrable)
	return authorityOf(suffix)
}

func authorityOf(suffix string) string {
	for end := len(suffix); end > 0; {
		start := strings.LastIndexByte(suffix[:end], '.') + 1
		authority, listed := bySuffix[suffix[start:]]
		if !listed {
			authority = byLabel[suffix[start:end]]
		}
		if authority != "" {
			return authority
		}
		end = start - 1
	}
	return "other"
}

// fold inverts the table, and converts IDN entries to ASCII as in hosts.
func fold(table map[string][]string) map[string]string {
	folded := make(map[string]string)
	for authority, suffixes := range table {
		for _, suffix := range suffixes {
			ascii, err := lookup.ToASCII(suffix)
			if err != nil {
				panic("domain: the authority table has an invalid suffix " + suffix)
			}
			folded[ascii] = authority
		}
	}
	return folded
}
