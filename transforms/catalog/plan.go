package catalog

import "slices"

// plan returns the stages of a site's crawl. A new stage needs its own file and a line
// here. It may wrap the work of an earlier stage, which then leads to it
// (TestAddingAStage).
func (v *visit) plan() []*stage {
	return slices.Concat(
		[]*stage{v.listPageFetcher()},
		[]*stage{v.listPageParser()},
		[]*stage{v.productDetailFetcher()},
		[]*stage{v.productDetailParser()},
		v.productTagger(), // none without --tag-url
		v.imageFetcher(),  // none without --images
		[]*stage{v.dbSaver()},
	)
}
