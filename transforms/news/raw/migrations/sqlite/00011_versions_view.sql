-- +goose Up
-- The earlier versions of articles, as the export has them.
CREATE VIEW news_versions_view AS SELECT
    v.article_id,
    a.source AS publisher,
    a.url,
    v.version,
    v.title,
    v.raw_text AS text,
    CASE WHEN v.published_at <> 0 THEN strftime('%Y-%m-%dT%H:%M:%S', v.published_at / 1000000, 'unixepoch') || printf('.%06dZ', v.published_at % 1000000) END AS published_at,
    strftime('%Y-%m-%dT%H:%M:%S', v.until_at / 1000000, 'unixepoch') || printf('.%06dZ', v.until_at % 1000000) AS until_at,
    v.content_hash
FROM news_versions v JOIN news_articles a ON a.id = v.article_id;
