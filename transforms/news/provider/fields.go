package provider

import (
	"cmp"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/transforms/parse/article"
)

// describe adds what a page says about its article for machines.
func (a *Article) describe(p *article.Page) {
	said, _ := p.Data.Article() // without one its fields are empty
	a.Description = cmp.Or(p.Data.First("og:description", "description"), said.Description)
	a.Section = cmp.Or(a.Section, said.Section)
	tags := append(slices.Clone(p.Data.Meta["article:tag"]), said.Keywords...)
	if len(tags) == 0 {
		tags = p.Data.Meta["news_keywords"]
	}
	for _, list := range tags {
		for tag := range strings.SplitSeq(list, ",") {
			if tag = strings.TrimSpace(tag); tag != "" && !slices.Contains(a.Tags, tag) {
				a.Tags = append(a.Tags, tag)
			}
		}
	}
	for _, address := range slices.Concat(said.Images, p.Data.Meta["og:image"], p.Data.Meta["og:image:url"], p.Data.Meta["twitter:image"]) {
		if !slices.Contains(a.Images, address) {
			a.Images = append(a.Images, address)
		}
	}
	for blog := range p.Data.All("LiveBlogPosting") {
		a.Live = a.Live || len(blog.Values("liveBlogUpdate")) > 0
	}
}
