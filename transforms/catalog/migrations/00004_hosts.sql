-- +goose Up
CREATE TABLE catalog_hosts (
    host    TEXT   PRIMARY KEY,
    next_at BIGINT NOT NULL -- nothing is sent before
);
