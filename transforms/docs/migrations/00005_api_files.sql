-- +goose Up

-- The files of an OpenAPI description that is in several.
CREATE TABLE docs_api_files (
	provider TEXT NOT NULL,
	key TEXT NOT NULL, -- of the page that is the description
	address TEXT NOT NULL, -- as the description refers to it; empty for the description itself
	session TEXT NOT NULL, -- the last one that asked
	state TEXT NOT NULL, -- found, missing, left
	reason TEXT NOT NULL,
	final TEXT NOT NULL, -- where its redirects led
	header TEXT NOT NULL, -- JSON: what of its answer is needed again
	hash TEXT NOT NULL,
	changed BIGINT NOT NULL, -- since the page's content was made
	body TEXT NOT NULL, -- JSON; empty but while the description is put together
	checked_at BIGINT NOT NULL,
	PRIMARY KEY (provider, key, address)
);
