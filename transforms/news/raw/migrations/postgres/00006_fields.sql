-- +goose Up
ALTER TABLE news_articles ADD COLUMN description TEXT NOT NULL DEFAULT '';
ALTER TABLE news_articles ADD COLUMN section TEXT NOT NULL DEFAULT '';
ALTER TABLE news_articles ADD COLUMN tags TEXT NOT NULL DEFAULT '[]'; -- JSON: a list
ALTER TABLE news_articles ADD COLUMN images TEXT NOT NULL DEFAULT '[]'; -- JSON: a list of addresses
ALTER TABLE news_articles ADD COLUMN modified_at BIGINT NOT NULL DEFAULT 0; -- as the page says; 0: it does not
ALTER TABLE news_articles ADD COLUMN form TEXT NOT NULL DEFAULT 'article'; -- or live_blog
ALTER TABLE news_articles ADD COLUMN version INTEGER NOT NULL DEFAULT 1; -- 2 after its first change
ALTER TABLE news_articles ADD COLUMN simhash BIGINT NOT NULL DEFAULT 0; -- of the whole text; 0: it is too short
ALTER TABLE news_articles ADD COLUMN copy_of TEXT NOT NULL DEFAULT ''; -- id of another publisher's article with nearly the same text

-- The earlier versions of articles. They go when their article goes.
CREATE TABLE news_versions (
    article_id   TEXT    NOT NULL,
    version      INTEGER NOT NULL,
    title        TEXT    NOT NULL,
    raw_text     TEXT    NOT NULL,
    published_at BIGINT  NOT NULL,
    content_hash TEXT    NOT NULL,
    until_at     BIGINT  NOT NULL, -- when the next one was found
    PRIMARY KEY (article_id, version)
);

CREATE OR REPLACE VIEW news_articles_view AS SELECT
    id,
    source AS publisher,
    press,
    url,
    canonical_url,
    external_id,
    title,
    raw_text AS text,
    authors::jsonb AS authors,
    language,
    to_timestamp(NULLIF(published_at, 0) / 1000000.0) AS published_at,
    to_timestamp(collected_at / 1000000.0) AS collected_at,
    to_timestamp(changed_at / 1000000.0) AS changed_at,
    to_timestamp(expires_at / 1000000.0) AS expires_at,
    content_hash,
    description,
    section,
    tags::jsonb AS tags,
    images::jsonb AS images,
    to_timestamp(NULLIF(modified_at, 0) / 1000000.0) AS modified_at,
    form,
    version,
    copy_of
FROM news_articles;
