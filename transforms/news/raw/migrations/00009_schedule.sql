-- +goose Up
CREATE TABLE news_schedule (
    source   TEXT   PRIMARY KEY,
    asked_at BIGINT NOT NULL, -- when it was last asked for its news
    due_at   BIGINT NOT NULL  -- when it is due again, by how often it publishes
);
