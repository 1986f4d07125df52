-- +goose Up
CREATE TABLE news_articles (
    id            TEXT    NOT NULL PRIMARY KEY,
    source        TEXT    NOT NULL, -- the provider's id
    press         TEXT    NOT NULL,
    unique_by     TEXT    NOT NULL, -- url, external_id or title_published
    url           TEXT    NOT NULL, -- as it was fetched
    canonical_url TEXT    NOT NULL,
    external_id   TEXT    NOT NULL, -- '' for none
    title         TEXT    NOT NULL,
    title_hash    TEXT    NOT NULL,
    raw_text      TEXT    NOT NULL,
    authors       TEXT    NOT NULL, -- JSON: a list of names
    language      TEXT    NOT NULL,
    published_at  BIGINT  NOT NULL, -- microseconds since 1970 UTC, as all times here; 0: not known
    content_hash  TEXT    NOT NULL, -- of what a reader sees
    collected_at  BIGINT  NOT NULL, -- first
    changed_at    BIGINT  NOT NULL,
    expires_at    BIGINT  NOT NULL  -- set once
);
-- The provider's policy names the key that holds for its rows (seed, section 5).
CREATE UNIQUE INDEX news_articles_url ON news_articles (source, canonical_url) WHERE unique_by = 'url';
CREATE UNIQUE INDEX news_articles_external ON news_articles (source, external_id) WHERE unique_by = 'external_id';
CREATE UNIQUE INDEX news_articles_title ON news_articles (source, title_hash, published_at) WHERE unique_by = 'title_published';
CREATE INDEX news_articles_canonical ON news_articles (source, canonical_url);
CREATE INDEX news_articles_expires ON news_articles (expires_at);

-- What was fetched, by a hash that outlives the article, so that one that was
-- purged does not come back.
CREATE TABLE news_urls (
    source      TEXT   NOT NULL,
    url_hash    TEXT   NOT NULL,
    state       TEXT   NOT NULL, -- stored, empty or purged
    sitemap_at  BIGINT NOT NULL, -- the sitemap's date when it was fetched; 0: it had none
    fetched_at  BIGINT NOT NULL,
    PRIMARY KEY (source, url_hash)
);

-- How well each provider's pages could be read, a row a run: the past that
-- alarms compare with.
CREATE TABLE news_runs (
    source    TEXT    NOT NULL,
    run_id    TEXT    NOT NULL,
    ended_at  BIGINT  NOT NULL,
    parsed    INTEGER NOT NULL, -- pages
    failed    INTEGER NOT NULL, -- of them not read
    titled    INTEGER NOT NULL,
    bodied    INTEGER NOT NULL,
    dated     INTEGER NOT NULL,
    PRIMARY KEY (source, run_id)
);
