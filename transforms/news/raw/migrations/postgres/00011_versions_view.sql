-- +goose Up
-- The earlier versions of articles, as the export has them.
CREATE VIEW news_versions_view AS SELECT
    v.article_id,
    a.source AS publisher,
    a.url,
    v.version,
    v.title,
    v.raw_text AS text,
    to_timestamp(NULLIF(v.published_at, 0) / 1000000.0) AS published_at,
    to_timestamp(v.until_at / 1000000.0) AS until_at,
    v.content_hash
FROM news_versions v JOIN news_articles a ON a.id = v.article_id;
