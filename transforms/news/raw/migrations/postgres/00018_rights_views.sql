-- +goose Up
-- The views have what sites say about use.
ALTER TABLE news_reserved
    ALTER decided_at TYPE TIMESTAMPTZ USING to_timestamp(decided_at / 1000000.0);
DROP VIEW news_articles_view;
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
    published_at,
    collected_at,
    changed_at,
    expires_at,
    content_hash,
    description,
    section,
    tags,
    images,
    modified_at,
    form,
    version,
    copy_of,
    paywall,
    rights_search,
    rights_ai_input,
    rights_ai_train,
    rights_archive,
    rights
FROM news_articles;
CREATE VIEW news_reserved_view AS SELECT
    source AS publisher,
    url,
    purpose,
    verdict,
    place,
    line,
    raw,
    sha256,
    read_at,
    decided_at
FROM news_reserved;
