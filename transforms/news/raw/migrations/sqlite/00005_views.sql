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
    authors,
    language,
    CASE WHEN published_at <> 0 THEN strftime('%Y-%m-%dT%H:%M:%S', published_at / 1000000, 'unixepoch') || printf('.%06dZ', published_at % 1000000) END AS published_at,
    strftime('%Y-%m-%dT%H:%M:%S', collected_at / 1000000, 'unixepoch') || printf('.%06dZ', collected_at % 1000000) AS collected_at,
    strftime('%Y-%m-%dT%H:%M:%S', changed_at / 1000000, 'unixepoch') || printf('.%06dZ', changed_at % 1000000) AS changed_at,
    strftime('%Y-%m-%dT%H:%M:%S', expires_at / 1000000, 'unixepoch') || printf('.%06dZ', expires_at % 1000000) AS expires_at,
    content_hash
FROM news_articles;
CREATE INDEX news_articles_published ON news_articles (published_at);
CREATE INDEX news_articles_collected ON news_articles (collected_at);
