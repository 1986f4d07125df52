INSERT INTO docs_sessions (id, started_at, active_at, finished_at, requested) VALUES ('run-1', 1771815600000000, 1771815604568303, 0, 4);
INSERT INTO docs_providers (id, disabled_at) VALUES ('off', 1);
INSERT INTO docs_hosts (host, next_at) VALUES ('docs.example.com', 1771819206126722);
INSERT INTO docs_robots (origin, status, body, fetched_at) VALUES ('https://docs.example.com', 404, '', 1771815600000000);
INSERT INTO docs_budget (minute, requests) VALUES (29530260, 5);
INSERT INTO pages (provider, key, address, status, reason, depth, session, seq, counted, retries, http_status, etag, last_modified, content_hash, read_by, title, chunks, discovered_at, requested_at, fetched_at, changed_at, gone_at) VALUES ('p', 'https://docs.example.com/docs', 'https://docs.example.com/docs', 'indexed', '', 0, 'run-1', 0, 1, 0, 200, '"s"', '', 'b8a340c24393768c93a1131bda26658b5d599af4e76658d37a54541b4918f3b3', '{read_by}', 'seed', 1, 1771815600000000, 1771815600000000, 1771815601289506, 1771815601289506, 0);
INSERT INTO pages (provider, key, address, status, reason, depth, session, seq, counted, retries, http_status, etag, last_modified, content_hash, read_by, title, chunks, discovered_at, requested_at, fetched_at, changed_at, gone_at) VALUES ('p', 'https://docs.example.com/docs/a', 'https://docs.example.com/docs/a', 'indexed', '', 1, 'run-1', 1, 1, 0, 200, '"a"', '', 'd017a5b26c385605c4eb4d1265137c41e0561ece8e39e8de18f4e8170145c4d5', '{read_by}', 'a', 1, 1771815601289506, 1771815601289506, 1771815603015406, 1771815603015406, 0);
INSERT INTO pages (provider, key, address, status, reason, depth, session, seq, counted, retries, http_status, etag, last_modified, content_hash, read_by, title, chunks, discovered_at, requested_at, fetched_at, changed_at, gone_at) VALUES ('p', 'https://docs.example.com/docs/no', 'https://docs.example.com/docs/no', 'failed', '403: never requested again', 1, 'run-1', 2, 1, 0, 403, '', '', '', '', '', 0, 1771815601289506, 1771815603015406, 0, 0, 0);
INSERT INTO pages (provider, key, address, status, reason, depth, session, seq, counted, retries, http_status, etag, last_modified, content_hash, read_by, title, chunks, discovered_at, requested_at, fetched_at, changed_at, gone_at) VALUES ('p', 'https://docs.example.com/docs/b', 'https://docs.example.com/docs/b', 'rate_limited', '', 1, 'run-1', 3, 1, 0, 429, '', '', '', '', '', 0, 1771815601289506, 1771815604568303, 0, 0, 0);
INSERT INTO pages (provider, key, address, status, reason, depth, session, seq, counted, retries, http_status, etag, last_modified, content_hash, read_by, title, chunks, discovered_at, requested_at, fetched_at, changed_at, gone_at) VALUES ('p', 'https://docs.example.com/docs/c', 'https://docs.example.com/docs/c', 'queued', '', 1, 'run-1', 4, 0, 0, 0, '', '', '', '', '', 0, 1771815601289506, 0, 0, 0, 0);
INSERT INTO links (provider, from_key, ordinal, to_key, to_address) VALUES ('p', 'https://docs.example.com/docs', 0, 'https://docs.example.com/docs/a', 'https://docs.example.com/docs/a');
INSERT INTO links (provider, from_key, ordinal, to_key, to_address) VALUES ('p', 'https://docs.example.com/docs', 1, 'https://docs.example.com/docs/no', 'https://docs.example.com/docs/no');
INSERT INTO links (provider, from_key, ordinal, to_key, to_address) VALUES ('p', 'https://docs.example.com/docs', 2, 'https://docs.example.com/docs/b', 'https://docs.example.com/docs/b');
INSERT INTO links (provider, from_key, ordinal, to_key, to_address) VALUES ('p', 'https://docs.example.com/docs', 3, 'https://docs.example.com/docs/c', 'https://docs.example.com/docs/c');
INSERT INTO chunks (provider, key, ordinal, id, heading, tokens, hash, preview) VALUES ('p', 'https://docs.example.com/docs', 0, 'e93dc0d70465ef934ec7ea32d022d3e8', '["seed"]', 39, '0db7cba9778783cf9f6f5b3a6ce8837e51d203e4469ad2bd341a398b397e6e73', '# seed

The page tells of seed at some length, so that it has something to say to its reader.

See that page.

See that page.

See that page.

See that page.');
INSERT INTO chunks (provider, key, ordinal, id, heading, tokens, hash, preview) VALUES ('p', 'https://docs.example.com/docs/a', 0, '4b2ec85119466c2217b8e75367766a81', '["a"]', 23, '55b7d7cf136bcfed6cf04f151fe4edbeb237e0318bb2f0f610bbfdb7974de24c', '# a

The page tells of a at some length, so that it has something to say to its reader.');
INSERT INTO docs_blocks (provider, key, blocks) VALUES ('p', 'https://docs.example.com/docs', '[{"path":["seed"],"hash":"13eae2fe5983b2ff"},{"path":["seed"],"hash":"38b7bf978c0ec75e"},{"path":["seed"],"hash":"e5d4573264d67681"},{"path":["seed"],"hash":"e5d4573264d67681"},{"path":["seed"],"hash":"e5d4573264d67681"},{"path":["seed"],"hash":"e5d4573264d67681"}]');
INSERT INTO docs_blocks (provider, key, blocks) VALUES ('p', 'https://docs.example.com/docs/a', '[{"path":["a"],"hash":"b2e77fbb5f564e21"},{"path":["a"],"hash":"466bb8e4fd91eeaa"}]');
INSERT INTO docs_changes (session, provider, key, kind, sections, at) VALUES ('run-1', 'p', 'https://docs.example.com/docs', 'new', '[{"path":["seed"],"kind":"added","added":6}]', 1771815601289506);
INSERT INTO docs_changes (session, provider, key, kind, sections, at) VALUES ('run-1', 'p', 'https://docs.example.com/docs/a', 'new', '[{"path":["a"],"kind":"added","added":2}]', 1771815603015406);
INSERT INTO blocked_urls (provider, key, address, http_status, blocked_at) VALUES ('p', 'https://docs.example.com/docs/no', 'https://docs.example.com/docs/no', 403, 1771815606126721);
INSERT INTO runs (session, provider, run_id, state, reason, started_at, active_at, finished_at, requested, queued, stats) VALUES ('run-1', 'p', 'run-1', 'held', 'the host asks for a pause until 2026-02-23T04:00:06Z', 1771815600000000, 1771815606126721, 0, 4, 5, '{"requests":4,"succeeded":2,"errors":2,"retries":1,"elapsed_us":4553,"answered":4,"fetched":2,"new":2,"updated":0,"unchanged":0,"deleted":0,"skipped":0,"failed":0,"blocked":1,"read":2,"empty":0,"chunks":2,"sources":[{"source":"html","pages":2,"requests":4}],"active_us":6126720,"waited_us":0}');
