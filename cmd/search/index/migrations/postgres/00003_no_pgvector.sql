-- +goose Up

-- Earlier versions kept vectors in the type of the extension pgvector where it existed. They become bytes.
-- +goose StatementBegin
DO $$
BEGIN
	IF EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass('search_pgvector') AND attname = 'vector' AND NOT attisdropped) THEN
		INSERT INTO search_vectors (id, model, input, vector)
		SELECT p.id, p.model, p.input, (
			SELECT string_agg(substr(b, 4, 1) || substr(b, 3, 1) || substr(b, 2, 1) || substr(b, 1, 1), ''::bytea ORDER BY n)
			FROM (SELECT float4send(x) AS b, n FROM unnest(p.vector::real[]) WITH ORDINALITY AS v (x, n)) AS floats)
		FROM search_pgvector p WHERE p.vector IS NOT NULL
		ON CONFLICT (id, model) DO NOTHING;
		UPDATE search_version SET n = n + 1;
	END IF;
	DROP TABLE IF EXISTS search_pgvector;
END $$;
-- +goose StatementEnd
