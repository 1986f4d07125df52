-- +goose Up
-- When a document was fetched is a number, as all other times are: microseconds since 1970 UTC, 0 for none.
DROP VIEW news_reserved_view;
ALTER TABLE news_reserved RENAME COLUMN read_at TO read_text;
ALTER TABLE news_reserved ADD COLUMN read_at BIGINT NOT NULL DEFAULT 0;
UPDATE news_reserved SET read_at = COALESCE(CAST(ROUND((julianday(read_text) - 2440587.5) * 86400000) AS INTEGER) * 1000, 0);
ALTER TABLE news_reserved DROP COLUMN read_text;
CREATE VIEW news_reserved_view AS SELECT
    source AS publisher,
    url,
    purpose,
    verdict,
    place,
    line,
    raw,
    sha256,
    CASE WHEN read_at <> 0 THEN strftime('%Y-%m-%dT%H:%M:%S', read_at / 1000000, 'unixepoch') || printf('.%06dZ', read_at % 1000000) END AS read_at,
    strftime('%Y-%m-%dT%H:%M:%S', decided_at / 1000000, 'unixepoch') || printf('.%06dZ', decided_at % 1000000) AS decided_at
FROM news_reserved;
