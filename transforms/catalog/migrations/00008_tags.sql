-- +goose Up
-- What a model says of a product (--tag-endpoint).
CREATE TABLE catalog_tags (
    site        TEXT   NOT NULL,
    product_key TEXT   NOT NULL,
    asked       TEXT   NOT NULL, -- hash of the model, the instruction and the fields that it was asked about
    model       TEXT   NOT NULL,
    tags        TEXT   NOT NULL, -- JSON: an array of texts
    tagged_at   BIGINT NOT NULL,
    PRIMARY KEY (site, product_key)
);
