-- +goose Up

-- The files of Markdown in the repository of a provider's documentation.
CREATE TABLE docs_repository_files (
	provider TEXT NOT NULL,
	path TEXT NOT NULL,
	sha TEXT NOT NULL, -- of its content
	size BIGINT NOT NULL,
	PRIMARY KEY (provider, path)
);
