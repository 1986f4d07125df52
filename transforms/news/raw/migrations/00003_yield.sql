-- +goose Up
-- How long a publisher has brought nothing, a row each.
CREATE TABLE news_yield (
    source    TEXT    NOT NULL PRIMARY KEY,
    run_id    TEXT    NOT NULL, -- the last that counted
    barren    INTEGER NOT NULL, -- runs in a row without an article that is there
    stale     INTEGER NOT NULL, -- runs in a row without a new one
    new_at    BIGINT  NOT NULL  -- when the last new one came; 0: never
);
