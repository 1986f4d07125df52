-- +goose Up

-- A session is one crawl of all providers; a killed run's session is gone on with by the next run.
CREATE TABLE docs_sessions (
	id TEXT PRIMARY KEY, -- of the run that began it
	started_at BIGINT NOT NULL,
	active_at BIGINT NOT NULL,
	finished_at BIGINT NOT NULL DEFAULT 0, -- 0: open
	requested BIGINT NOT NULL DEFAULT 0 -- pages, of all providers
);

CREATE TABLE docs_providers (
	id TEXT PRIMARY KEY,
	disabled_at BIGINT NOT NULL DEFAULT 0 -- 0: enabled
);

-- One provider's part of a session.
CREATE TABLE runs (
	session TEXT NOT NULL,
	provider TEXT NOT NULL,
	run_id TEXT NOT NULL, -- the last run that worked on it
	state TEXT NOT NULL, -- open, held, done
	reason TEXT NOT NULL DEFAULT '',
	started_at BIGINT NOT NULL,
	active_at BIGINT NOT NULL,
	finished_at BIGINT NOT NULL DEFAULT 0,
	requested BIGINT NOT NULL DEFAULT 0, -- pages, against max_pages
	queued BIGINT NOT NULL DEFAULT 0, -- pages ever queued: the next sequence number
	stats TEXT NOT NULL DEFAULT '{}',
	PRIMARY KEY (session, provider)
);

CREATE TABLE pages (
	provider TEXT NOT NULL,
	key TEXT NOT NULL,
	address TEXT NOT NULL,
	status TEXT NOT NULL, -- the states of CPA-001 appendix B, not_modified, deleted, too_large
	reason TEXT NOT NULL DEFAULT '',
	depth INTEGER NOT NULL,
	session TEXT NOT NULL,
	seq BIGINT NOT NULL, -- order of discovery in the session
	counted INTEGER NOT NULL DEFAULT 0, -- against max_pages of the session
	retries INTEGER NOT NULL DEFAULT 0,
	http_status INTEGER NOT NULL DEFAULT 0,
	etag TEXT NOT NULL DEFAULT '',
	last_modified TEXT NOT NULL DEFAULT '',
	content_hash TEXT NOT NULL DEFAULT '', -- empty: there is no content
	read_by TEXT NOT NULL DEFAULT '', -- of what made the content from the page
	title TEXT NOT NULL DEFAULT '',
	chunks INTEGER NOT NULL DEFAULT 0,
	discovered_at BIGINT NOT NULL,
	requested_at BIGINT NOT NULL DEFAULT 0,
	fetched_at BIGINT NOT NULL DEFAULT 0, -- last 200 or 304
	changed_at BIGINT NOT NULL DEFAULT 0,
	gone_at BIGINT NOT NULL DEFAULT 0,
	PRIMARY KEY (provider, key)
);
CREATE INDEX pages_queue ON pages (provider, session, status, depth, seq);

-- The links of a page that are in scope, so that a 304 does not cut the crawl short.
CREATE TABLE links (
	provider TEXT NOT NULL,
	from_key TEXT NOT NULL,
	ordinal INTEGER NOT NULL,
	to_key TEXT NOT NULL,
	to_address TEXT NOT NULL,
	PRIMARY KEY (provider, from_key, ordinal)
);

CREATE TABLE chunks (
	provider TEXT NOT NULL,
	key TEXT NOT NULL,
	ordinal INTEGER NOT NULL,
	id TEXT NOT NULL,
	heading TEXT NOT NULL, -- JSON list, outermost first
	tokens INTEGER NOT NULL,
	hash TEXT NOT NULL,
	preview TEXT NOT NULL, -- at most 500 characters; the whole text is not kept here
	PRIMARY KEY (provider, key, ordinal)
);
CREATE INDEX chunks_id ON chunks (id);

-- What a page looked like, block by block, without its text.
CREATE TABLE docs_blocks (
	provider TEXT NOT NULL,
	key TEXT NOT NULL,
	blocks TEXT NOT NULL, -- JSON list of chunk.Block
	PRIMARY KEY (provider, key)
);

CREATE TABLE docs_changes (
	session TEXT NOT NULL,
	provider TEXT NOT NULL,
	key TEXT NOT NULL,
	kind TEXT NOT NULL, -- new, updated, deleted
	sections TEXT NOT NULL, -- JSON list of chunk.Change
	at BIGINT NOT NULL,
	PRIMARY KEY (session, provider, key)
);

-- 403: never asked again.
CREATE TABLE blocked_urls (
	provider TEXT NOT NULL,
	key TEXT NOT NULL,
	address TEXT NOT NULL,
	http_status INTEGER NOT NULL,
	blocked_at BIGINT NOT NULL,
	PRIMARY KEY (provider, key)
);

CREATE TABLE docs_hosts (
	host TEXT PRIMARY KEY,
	next_at BIGINT NOT NULL -- nothing is sent before
);

CREATE TABLE docs_robots (
	origin TEXT PRIMARY KEY, -- scheme://host
	status INTEGER NOT NULL, -- 0: no answer
	body TEXT NOT NULL,
	fetched_at BIGINT NOT NULL
);

-- Requests sent, by minute, for the budgets of an hour and a day.
CREATE TABLE docs_budget (
	minute BIGINT PRIMARY KEY, -- since 1970
	requests BIGINT NOT NULL
);
