-- +goose Up
CREATE TABLE leases (
    name        TEXT   NOT NULL PRIMARY KEY,
    holder      TEXT   NOT NULL,
    epoch       BIGINT NOT NULL, -- grows with each holding, so a row is never deleted
    acquired_at BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL  -- 0: released
);
