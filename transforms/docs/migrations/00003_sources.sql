-- +goose Up

-- What a provider's site offers besides its pages, and what it was found not to offer.
CREATE TABLE docs_sources (
	provider TEXT NOT NULL,
	source TEXT NOT NULL, -- llms, llms_full, markdown, sitemap
	address TEXT NOT NULL,
	session TEXT NOT NULL, -- the last one that asked
	state TEXT NOT NULL, -- found, same (304), missing
	reason TEXT NOT NULL,
	etag TEXT NOT NULL DEFAULT '',
	last_modified TEXT NOT NULL DEFAULT '',
	read_by TEXT NOT NULL DEFAULT '', -- as in pages
	checked_at BIGINT NOT NULL,
	PRIMARY KEY (provider, source, address)
);

-- Where the content of a page comes from.
CREATE TABLE docs_page_sources (
	provider TEXT NOT NULL,
	key TEXT NOT NULL,
	source TEXT NOT NULL DEFAULT '', -- empty: it has not been fetched
	reason TEXT NOT NULL DEFAULT '',
	twin TEXT NOT NULL DEFAULT '', -- the address of its Markdown
	PRIMARY KEY (provider, key)
);
