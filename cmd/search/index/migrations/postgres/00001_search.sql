-- +goose Up

CREATE TABLE search_chunks (
	n BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
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
	changed_at BIGINT NOT NULL,
	words TSVECTOR NOT NULL -- in alphabetical order, so that the text cannot be read from them
);
CREATE INDEX search_chunks_changed ON search_chunks (changed_at);
CREATE INDEX search_chunks_provider ON search_chunks (provider);

CREATE INDEX search_chunks_words ON search_chunks USING gin (words);

CREATE TABLE search_vectors (
	id TEXT NOT NULL, -- of the chunk
	model TEXT NOT NULL,
	input TEXT NOT NULL, -- SHA-256 of what the vector was made of
	vector BYTEA NOT NULL, -- 32-bit floats, little endian, of length 1
	PRIMARY KEY (id, model)
);

CREATE TABLE search_done (
	name TEXT NOT NULL, -- of a hand-off that was read
	model TEXT NOT NULL,
	at BIGINT NOT NULL,
	PRIMARY KEY (name, model)
);
