package catalog

// plan is the crawl of one site, stage by stage. A stage is added with a file of
// its own and a line here; where it wraps an earlier stage's work, that stage
// leads to it (TestAddingAStage).
func (v *visit) plan() []*stage {
	return []*stage{
		v.listPageFetcher(),
		v.listPageParser(),
		v.productDetailFetcher(),
		v.productDetailParser(),
		v.dbSaver(),
	}
}
