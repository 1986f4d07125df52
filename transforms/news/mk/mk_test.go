package mk

import (
	"testing"

	"github.com/newsfork/seed-engine/transforms/news/provider/providertest"
)

func TestProvider(t *testing.T) {
	providertest.Run(t, Provider{}, map[string]string{
		"https://www.mk.co.kr/news/economy/11012345":         "11012345",
		"https://mk.co.kr/news/stock/11012345/":              "11012345",
		"https://www.mk.co.kr/newsRead.php?year=2021&no=123": "2021-123",
		"https://www.mk.co.kr/news/economy/":                 "",
		"https://www.mk.co.kr/news/ranking/":                 "",
		"https://www.mk.co.kr/news/home/11012345":            "",
		"https://other.example/news/economy/11012345":        "",
	})
}
