package hankyung

import (
	"testing"

	"github.com/newsfork/seed-engine/transforms/news/provider/providertest"
)

func TestProvider(t *testing.T) {
	providertest.Run(t, Provider{}, map[string]string{
		"https://www.hankyung.com/article/2024050312341":         "2024050312341",
		"https://www.hankyung.com/article/202405031234i":         "202405031234i",
		"https://www.hankyung.com/economy/article/2024050312341": "2024050312341",
		"https://www.hankyung.com/economy":                       "",
		"https://www.hankyung.com/article/":                      "",
		"https://other.example/article/2024050312341":            "",
	})
}
