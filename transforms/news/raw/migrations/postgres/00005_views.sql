-- +goose Up
-- The table as one queries it: times, JSON, and the names of the exports.
CREATE VIEW news_articles_view AS SELECT
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
    content_hash
FROM news_articles;
CREATE INDEX news_articles_published ON news_articles (to_timestamp(NULLIF(published_at, 0) / 1000000.0));
CREATE INDEX news_articles_collected ON news_articles (to_timestamp(collected_at / 1000000.0));
