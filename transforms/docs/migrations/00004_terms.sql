-- +goose Up

-- The page of each provider's terms of service, by the hash of its text.
CREATE TABLE docs_terms (
	provider TEXT PRIMARY KEY,
	address TEXT NOT NULL,
	session TEXT NOT NULL, -- the last one that asked
	reason TEXT NOT NULL, -- why it could not be read, empty: it could
	hash TEXT NOT NULL, -- of the text that was read last, empty: never
	etag TEXT NOT NULL,
	last_modified TEXT NOT NULL,
	checked_at BIGINT NOT NULL, -- the last request
	read_at BIGINT NOT NULL, -- the text was last seen to be this one
	changed_at BIGINT NOT NULL, -- another text was found, 0: never
	before_at BIGINT NOT NULL, -- the text before that was last seen
	tos_checked TEXT NOT NULL -- of the policy when the change was found
);
