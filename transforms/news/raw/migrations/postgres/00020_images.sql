-- +goose Up
-- An image by its address. Its bytes are an object of the store, images/news/{source}/.
CREATE TABLE news_images (
    source        TEXT   NOT NULL,
    url           TEXT   NOT NULL,
    hash          TEXT   NOT NULL, -- SHA-256 of its bytes; '': it was never received
    type          TEXT   NOT NULL, -- by its bytes: image/jpeg, image/png, image/gif, image/webp, image/avif
    bytes         BIGINT NOT NULL,
    width         BIGINT NOT NULL, -- pixels
    height        BIGINT NOT NULL,
    etag          TEXT   NOT NULL,
    last_modified TEXT   NOT NULL,
    fetched_at    TIMESTAMPTZ, -- when the bytes were received; NULL: never
    asked_at      TIMESTAMPTZ, -- when it was requested last
    asked_in      BIGINT NOT NULL, -- when the visit began that requested it last
    again_at      TIMESTAMPTZ, -- it is not requested before
    failure       TEXT   NOT NULL, -- why the last request brought nothing; '': it did
    PRIMARY KEY (source, url)
);
-- The images that articles name, in the order in which they do.
CREATE VIEW news_named_images AS SELECT
    a.source,
    a.id AS article_id,
    a.url AS article_url,
    a.expires_at,
    i.url,
    n.position AS position,
    i.hash, i.type, i.bytes, i.width, i.height, i.fetched_at, i.failure
FROM news_articles a CROSS JOIN LATERAL jsonb_array_elements_text(a.images) WITH ORDINALITY AS n(value, position) JOIN news_images i ON i.source = a.source AND i.url = n.value;
CREATE VIEW news_images_view AS SELECT
    source AS publisher,
    article_id,
    article_url,
    url,
    position,
    hash,
    type,
    bytes,
    width,
    height,
    fetched_at,
    failure
FROM news_named_images;
