-- +goose Up
-- The views have what sites say about use.
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
    CASE WHEN published_at <> 0 THEN strftime('%Y-%m-%dT%H:%M:%S', published_at / 1000000, 'unixepoch') || printf('.%06dZ', published_at % 1000000) END AS published_at,
    strftime('%Y-%m-%dT%H:%M:%S', collected_at / 1000000, 'unixepoch') || printf('.%06dZ', collected_at % 1000000) AS collected_at,
    strftime('%Y-%m-%dT%H:%M:%S', changed_at / 1000000, 'unixepoch') || printf('.%06dZ', changed_at % 1000000) AS changed_at,
    strftime('%Y-%m-%dT%H:%M:%S', expires_at / 1000000, 'unixepoch') || printf('.%06dZ', expires_at % 1000000) AS expires_at,
    content_hash,
    description,
    section,
    tags,
    images,
    CASE WHEN modified_at <> 0 THEN strftime('%Y-%m-%dT%H:%M:%S', modified_at / 1000000, 'unixepoch') || printf('.%06dZ', modified_at % 1000000) END AS modified_at,
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
    strftime('%Y-%m-%dT%H:%M:%S', decided_at / 1000000, 'unixepoch') || printf('.%06dZ', decided_at % 1000000) AS decided_at
FROM news_reserved;
