-- +goose Up
CREATE TABLE news_hosts (
    host    TEXT   PRIMARY KEY,
    next_at BIGINT NOT NULL -- nothing is sent before
);
