-- +goose Up

CREATE TABLE search_chunks (
	n INTEGER PRIMARY KEY,
	id TEXT NOT NULL UNIQUE,
	provider TEXT NOT NULL,
	url TEXT NOT NULL,
	anchor TEXT NOT NULL,
	title TEXT NOT NULL,
	context TEXT NOT NULL,
	language TEXT NOT NULL,
	ordinal INTEGER NOT NULL,
	excerpt TEXT NOT NULL, -- at most 200 characters
	whole TEXT NOT NULL, -- the text of a provider whose terms allow it; else empty
	fetched_at BIGINT NOT NULL, -- 0: not known
	changed_at BIGINT NOT NULL
);
CREATE INDEX search_chunks_changed ON search_chunks (changed_at);
CREATE INDEX search_chunks_provider ON search_chunks (provider);

-- The words of each chunk in alphabetical order, so that the text cannot be read from them.
CREATE VIRTUAL TABLE search_words USING fts5(words, content='', contentless_delete=1, tokenize='porter unicode61 remove_diacritics 2');

CREATE TABLE search_vectors (
	id TEXT NOT NULL, -- of the chunk
	model TEXT NOT NULL,
	input TEXT NOT NULL, -- SHA-256 of what the vector was made of
	vector BLOB NOT NULL, -- 32-bit floats, little endian, of length 1
	PRIMARY KEY (id, model)
);

CREATE TABLE search_done (
	name TEXT NOT NULL, -- of a hand-off that was read
	model TEXT NOT NULL,
	at BIGINT NOT NULL,
	PRIMARY KEY (name, model)
);
