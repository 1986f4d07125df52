package catalog

// plan returns the stages of a site's crawl. A new stage needs its own file and a line
// here. It may wrap the work of an earlier stage, which then leads to it
// (TestAddingAStage).
func (v *visit) plan() []*stage {
	return []*stage{
		v.listPageFetcher(),
		v.listPageParser(),
		v.productDetailFetcher(),
		v.productDetailParser(),
		v.dbSaver(),
	}
}
