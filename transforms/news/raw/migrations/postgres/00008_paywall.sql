-- +goose Up
ALTER TABLE news_articles ADD COLUMN paywall TEXT NOT NULL DEFAULT ''; -- metered, teaser; empty: none is known

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
    copy_of,
    paywall
FROM news_articles;
