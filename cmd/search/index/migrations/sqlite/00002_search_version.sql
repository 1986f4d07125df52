-- +goose Up

-- It changes with each change of the vectors, so that who keeps them in memory knows.
CREATE TABLE search_version (n BIGINT NOT NULL);
INSERT INTO search_version (n) VALUES (0);
