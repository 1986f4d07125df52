-- +goose Up
-- An image by its address. Its bytes are an object of the store, images/sha256/.
CREATE TABLE catalog_images (
    site          TEXT   NOT NULL,
    url           TEXT   NOT NULL,
    hash          TEXT   NOT NULL, -- SHA-256 of its bytes; '': it was never received
    type          TEXT   NOT NULL, -- by its bytes: image/jpeg, image/png, image/gif, image/webp, image/avif
    bytes         BIGINT NOT NULL,
    width         BIGINT NOT NULL, -- pixels
    height        BIGINT NOT NULL,
    etag          TEXT   NOT NULL,
    last_modified TEXT   NOT NULL,
    fetched_at    BIGINT NOT NULL, -- when the bytes were received; 0: never
    asked_at      BIGINT NOT NULL, -- when it was asked for last
    asked_in      BIGINT NOT NULL, -- number of the crawl that asked for it last
    again_at      BIGINT NOT NULL, -- it is not asked for before
    failure       TEXT   NOT NULL, -- why the last request brought nothing; '': it did
    PRIMARY KEY (site, url)
);

-- The images that a product names, or named.
CREATE TABLE catalog_product_images (
    site        TEXT   NOT NULL,
    product_key TEXT   NOT NULL,
    url         TEXT   NOT NULL,
    field       TEXT   NOT NULL,
    position    BIGINT NOT NULL, -- among the product's images, from 1
    first_seen  BIGINT NOT NULL,
    last_seen   BIGINT NOT NULL,
    gone_at     BIGINT NOT NULL, -- 0: the product still names it
    PRIMARY KEY (site, product_key, url)
);
CREATE INDEX catalog_product_images_url ON catalog_product_images (site, url);
