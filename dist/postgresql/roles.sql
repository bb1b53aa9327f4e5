-- SPDX-License-Identifier: MIT
-- Roles of a store in PostgreSQL: `sluice store roles ADDRESS` applies this, and
-- `sluice store roles --print` prints it for psql. Run it as the owner of the
-- schema, which is the role of schedulers, again after each upgrade of sluice.
--
--   SCHEMA_worker  for workers: each has a role of its own, a member of this
--                  one, whose name is the worker's name
--   SCHEMA_reader  for those who look: status, why, top, serve
--
-- Row security keeps workers from each other. It does not hold for the owner.

DO $roles$
DECLARE
    schema text := current_schema();
    worker text := current_schema() || '_worker';
    reader text := current_schema() || '_reader';
    name text;
    columns text;
BEGIN
    IF schema IS NULL THEN
        RAISE EXCEPTION 'there is no store here' USING ERRCODE = '3F000';
    END IF;
    FOREACH name IN ARRAY ARRAY[worker, reader] LOOP
        IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = name) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', name);
        END IF;
        EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA %I FROM %I',
                       schema, name);
        EXECUTE format('REVOKE ALL ON SCHEMA %I FROM %I', schema, name);
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', schema, name);
    END LOOP;

    -- Privileges on columns are not revoked with those on tables.
    FOR name, columns IN
        SELECT table_name, string_agg(quote_ident(column_name), ', ')
        FROM information_schema.columns
        WHERE table_schema = schema GROUP BY table_name
    LOOP
        EXECUTE format('REVOKE ALL (%s) ON %I FROM %I, %I',
                       columns, name, worker, reader);
    END LOOP;

    -- Readers.
    EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA %I TO %I',
                   schema, reader);
    EXECUTE format('ALTER DEFAULT PRIVILEGES IN SCHEMA %I'
                   ' GRANT SELECT ON TABLES TO %I', schema, reader);

    -- Workers: the head of the store, and rows of their own. What others set
    -- in these rows they may not change.
    EXECUTE format('GRANT SELECT ON version TO %I', worker);
    EXECUTE format('GRANT SELECT (one, id, epoch, lease_until, beat, listens,'
                   ' writes, engine_ns, wall_ns, last_token, last_event,'
                   ' last_sum, last_command, last_run) ON scheduler TO %I',
                   worker);
    EXECUTE format('GRANT SELECT, INSERT ON worker, log, peek TO %I', worker);
    EXECUTE format('GRANT SELECT ON work TO %I', worker);
    EXECUTE format('GRANT SELECT, DELETE ON ask TO %I', worker);
    FOR name, columns IN
        SELECT table_name, string_agg(quote_ident(column_name), ', ')
        FROM information_schema.columns
        WHERE table_schema = schema
            AND (table_name, column_name) NOT IN (
                ('worker', 'name'), ('worker', 'wanted'),
                ('work', 'token'), ('work', 'worker'), ('work', 'nonce'),
                ('work', 'body'), ('work', 'want'), ('work', 'messages'),
                ('log', 'token'), ('log', 'worker'),
                ('peek', 'token'), ('peek', 'worker'), ('peek', 'wanted'))
            AND table_name IN ('worker', 'work', 'log', 'peek')
        GROUP BY table_name
    LOOP
        EXECUTE format('GRANT UPDATE (%s) ON %I TO %I', columns, name, worker);
    END LOOP;
    SELECT string_agg(quote_ident(column_name), ', ') INTO columns
    FROM information_schema.columns
    WHERE table_schema = schema AND table_name = 'ask'
        AND column_name NOT IN ('number', 'asker', 'taken', 'answer');
    EXECUTE format('GRANT INSERT (%s) ON ask TO %I', columns, worker);

    FOREACH name IN ARRAY ARRAY['worker', 'work', 'log', 'peek', 'ask'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('DROP POLICY IF EXISTS reading ON %I', name);
        EXECUTE format('DROP POLICY IF EXISTS own ON %I', name);
        EXECUTE format('CREATE POLICY reading ON %I FOR SELECT TO %I'
                       ' USING (true)', name, reader);
    END LOOP;
    EXECUTE format('CREATE POLICY own ON worker TO %I'
                   ' USING (name = current_user)', worker);
    EXECUTE format('CREATE POLICY own ON work TO %I'
                   ' USING (worker = current_user)'
                   ' WITH CHECK (worker = current_user AND state <> ''lost'')',
                   worker);
    EXECUTE format('CREATE POLICY own ON log TO %I'
                   ' USING (worker = current_user)'
                   ' WITH CHECK (worker = current_user AND EXISTS ('
                   'SELECT 1 FROM work WHERE work.token = log.token))',
                   worker);
    EXECUTE format('CREATE POLICY own ON peek TO %I'
                   ' USING (worker = current_user)'
                   ' WITH CHECK (worker = current_user AND EXISTS ('
                   'SELECT 1 FROM work WHERE work.token = peek.token))',
                   worker);
    EXECUTE format('CREATE POLICY own ON ask TO %I'
                   ' USING (asker = current_user)'
                   ' WITH CHECK (asker = current_user AND session)', worker);
END $roles$;
