-- +goose Up
-- What robots.txt, the response and the page say about use: the lines as JSON, and what follows for each purpose.
-- Empty: an older version read it.
ALTER TABLE news_articles ADD COLUMN rights TEXT NOT NULL DEFAULT '';
ALTER TABLE news_articles ADD COLUMN rights_search TEXT NOT NULL DEFAULT '';
ALTER TABLE news_articles ADD COLUMN rights_ai_input TEXT NOT NULL DEFAULT '';
ALTER TABLE news_articles ADD COLUMN rights_ai_train TEXT NOT NULL DEFAULT '';
ALTER TABLE news_articles ADD COLUMN rights_archive TEXT NOT NULL DEFAULT '';
-- Articles that are reserved for a run's purpose, of which nothing else is stored.
CREATE TABLE news_reserved (
    source     TEXT   NOT NULL,
    url        TEXT   NOT NULL,
    url_hash   TEXT   NOT NULL,
    purpose    TEXT   NOT NULL,
    verdict    TEXT   NOT NULL,
    place      TEXT   NOT NULL, -- URL of the document that says so
    line       BIGINT NOT NULL, -- 0: a header
    raw        TEXT   NOT NULL,
    sha256     TEXT   NOT NULL, -- of that document
    read_at    TEXT   NOT NULL, -- when it was fetched
    rights     TEXT   NOT NULL, -- JSON
    decided_at BIGINT NOT NULL, -- microseconds since 1970 UTC
    PRIMARY KEY (source, url_hash)
);
