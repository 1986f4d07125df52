-- +goose Up
-- Addresses that the next run requests whatever its sitemaps name: somebody replayed their
-- dead letters.
CREATE TABLE news_again (
    source TEXT NOT NULL,
    url    TEXT NOT NULL,
    PRIMARY KEY (source, url)
);
