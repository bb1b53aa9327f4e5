-- SPDX-License-Identifier: MIT
-- Roles of a store in PostgreSQL: `sluice store roles ADDRESS` applies this, and
-- `sluice store roles --print` prints it for psql. Run it as the owner of the
-- schema, which is the role of schedulers, again after each upgrade of sluice.
--
--   SCHEMA_worker  for workers: each has a login of its own, a member of this
--                  role, whose name is the worker's name
--   SCHEMA_reader  for those who look: status, why, top, serve
--
-- A worker can call one function, worker_turn(), which shows and changes what is
-- the worker's own, and nothing else.

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

    -- Workers.
    EXECUTE format('GRANT SELECT ON version TO %I', worker);
    EXECUTE format('GRANT SELECT (id) ON scheduler TO %I', worker);
    EXECUTE format('GRANT EXECUTE ON FUNCTION worker_turn(jsonb) TO %I', worker);
END $roles$;
