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
    fetched_at    BIGINT NOT NULL, -- when the bytes were received; 0: never
    asked_at      BIGINT NOT NULL, -- when it was requested last
    asked_in      BIGINT NOT NULL, -- when the visit began that requested it last
    again_at      BIGINT NOT NULL, -- it is not requested before
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
    n.key + 1 AS position,
    i.hash, i.type, i.bytes, i.width, i.height, i.fetched_at, i.failure
FROM news_articles a CROSS JOIN json_each(a.images) n JOIN news_images i ON i.source = a.source AND i.url = n.value;
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
    CASE WHEN fetched_at <> 0 THEN strftime('%Y-%m-%dT%H:%M:%S', fetched_at / 1000000, 'unixepoch') || printf('.%06dZ', fetched_at % 1000000) END AS fetched_at,
    failure
FROM news_named_images;
