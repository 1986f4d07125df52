-- +goose Up

-- What was seen of pages of terms, and of the files of OpenAPI descriptions: nothing reads or writes it any more.
DROP TABLE docs_terms;
DROP TABLE docs_api_files;
