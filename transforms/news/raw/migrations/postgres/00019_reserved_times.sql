-- +goose Up
-- When a document was fetched is a timestamp, as all other times are.
DROP VIEW news_reserved_view;
ALTER TABLE news_reserved
    ALTER read_at DROP NOT NULL, ALTER read_at TYPE TIMESTAMPTZ USING NULLIF(read_at, '')::timestamptz;
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
