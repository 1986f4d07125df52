package content_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/docs/content"
)

func TestLanguage(t *testing.T) {
	for page, want := range map[string]string{
		`<html lang="ko"><p>a`:     "ko",
		`<html lang="pt_br"><p>a`:  "pt-BR",
		`<html xml:lang="de"><p>a`: "de",
		`<html lang=" "><meta http-equiv="content-language" content="fr, en"><p>a`: "fr",
		`<html lang="en"><meta http-equiv="Content-Language" content="fr"><p>a`:    "en",
		`<html lang="{{ lang }}"><p>a`:                                             "",
		`<html lang="und"><p>a`:                                                    "",
		`<p lang="ja">a`:                                                           "",
	} {
		p, err := content.Extract([]byte(page), "text/html; charset=utf-8", content.Options{})
		require.NoError(t, err)
		require.Equal(t, want, p.Language, page)
	}
}
